"""Commands that change a plan: edit, add, remove, move, skip, unskip, regenerate. Each prints the diff."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from plansurvive.client import edits as editing
from plansurvive.client.cli import output, session
from plansurvive.client.cli.options import AsJson, By, Comment, Id, Step, complete_step
from plansurvive.client.cli.session import Connected, who
from plansurvive.client.differences.plan_diff import PlanDiff
from plansurvive.client.differences.plan_rows import plan_rows
from plansurvive.client.edits import Edited
from plansurvive.client.ids import plan_id
from plansurvive.client.plan_file import load
from plansurvive.client.requests.llm import require_llm_of
from plansurvive.plans.editing.step_places import setting_of
from plansurvive.plans.edits import AddStep, Edit, MoveStep, RemoveStep, SetField, SkipStep, UnskipStep
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.apply_edits import PLAN_FIELDS, STEP_FIELDS

Expect = Annotated[
    int | None, typer.Option("--expect-version", metavar="N", help="Fail if the plan is at another version.")
]
Sets = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="STEP.FIELD=VALUE",
        help="Set a field: s2.args.path=b.txt, or title=TEXT; inside a loop for all items, resize.thumb.args.size=64,"
        " or for one, 'resize[cat.png].thumb.args.size=64'. The value may be JSON; repeatable.",
    ),
]
After = Annotated[
    str | None, typer.Option("--after", metavar="STEP", help="Place it after this step.", autocompletion=complete_step)
]
Before = Annotated[
    str | None,
    typer.Option("--before", metavar="STEP", help="Place it before this step.", autocompletion=complete_step),
]


def edit(
    plan: Id, sets: Sets, by: By = None, comment: Comment = "", expect: Expect = None, as_json: AsJson = False
) -> None:
    """Edit steps that have not started, or the plan itself. If one change is invalid, none is made."""
    _apply(plan, [_set(text) for text in sets], by, comment, expect, as_json)


def add(
    plan: Id,
    file: Annotated[
        str, typer.Argument(metavar="STEP.json", help="File with one step, JSON or YAML; - reads standard input.")
    ],
    after: After = None,
    before: Before = None,
    by: By = None,
    comment: Comment = "",
    expect: Expect = None,
    as_json: AsJson = False,
) -> None:
    """Add a step."""
    step = load(file).data
    if not isinstance(step, dict):
        raise PlanError(f"{file} does not hold a step; write one object with id, tool and args", "PLAN_SCHEMA")
    if after and before:
        raise PlanError("give --after or --before, not both", "BAD_USAGE")
    _apply(plan, [AddStep(op="add", step=step, after=after, before=before)], by, comment, expect, as_json)


def remove(
    plan: Id, step: Step, by: By = None, comment: Comment = "", expect: Expect = None, as_json: AsJson = False
) -> None:
    """Remove a step that no other step depends on."""
    _apply(plan, [RemoveStep(op="remove", step_id=step)], by, comment, expect, as_json)


def move(
    plan: Id,
    step: Step,
    after: After = None,
    by: By = None,
    comment: Comment = "",
    expect: Expect = None,
    as_json: AsJson = False,
) -> None:
    """Move a step behind another one in the list. Without --after: to the front. It stays behind its dependencies."""
    _apply(plan, [MoveStep(op="move", step_id=step, after=after)], by, comment, expect, as_json)


def skip(
    plan: Id, step: Step, by: By = None, comment: Comment = "", expect: Expect = None, as_json: AsJson = False
) -> None:
    """Skip a step. Its dependents still run, unless they use its value."""
    _apply(plan, [SkipStep(op="skip", step_id=step, reason=comment)], by, comment, expect, as_json)


def unskip(
    plan: Id, step: Step, by: By = None, comment: Comment = "", expect: Expect = None, as_json: AsJson = False
) -> None:
    """Undo a skip."""
    _apply(plan, [UnskipStep(op="unskip", step_id=step)], by, comment, expect, as_json)


def regenerate(
    plan: Id,
    feedback: Annotated[str, typer.Argument(metavar="FEEDBACK", help="What the LLM should change.")],
    by: By = None,
    expect: Expect = None,
    as_json: AsJson = False,
) -> None:
    """Have the LLM revise the steps that have not started. The plan is in review until `plan begin`."""
    if not feedback.strip():
        raise PlanError("the feedback is empty; say what the LLM should change", "BAD_REQUEST")

    async def ask(here: Connected) -> tuple[Edited, PlanDiff]:
        await require_llm_of(here.client, plan, here.settings, own_worker=here.keeps_worker)
        return await editing.regenerated(here.client, plan, feedback, expect_version=expect, by=by or who())

    found, diff = session.run(ask, starts=True)
    _report(plan, found, as_json, None if as_json else plan_rows(diff) or ["No changes."])
    if not as_json:
        name = plan_id(plan)
        output.say(f"The plan is in review.\n  review  plan review {name}\n  begin   plan begin {name}")


def _apply(plan: str, edits: list[Edit], by: str | None, comment: str, expect: int | None, as_json: bool) -> None:
    found = session.run(
        lambda here: editing.edit(here.client, plan, edits, expect_version=expect, by=by or who(), why=comment)
    )
    _report(plan, found, as_json)


def _report(plan: str, edited: Edited, as_json: bool, rows: list[str] | None = None) -> None:
    if as_json:
        output.show_json({"planId": plan_id(plan), **edited.model_dump(mode="json")})
    else:
        told = [f"  {row}" for row in rows or edited.diff]
        output.show("\n".join([f"{plan_id(plan)}: version {edited.version}", *told]))
        for warning in edited.warnings:
            output.say(f"Warning: {warning}")


def _set(text: str) -> SetField:
    """Parse `STEP.FIELD=VALUE` or `FIELD=VALUE`; the value is parsed as JSON if possible."""
    first, rest, value = setting_of(text)
    place = f"{first}.{rest}" if rest else first
    if value is None or not place:
        raise PlanError(f"--set {text!r} is not STEP.FIELD=VALUE", "BAD_USAGE")
    is_step = rest.split(".")[0].split("[")[0] in STEP_FIELDS or first.split(".")[0].split("[")[0] not in PLAN_FIELDS
    if is_step and not rest:
        raise PlanError(f"--set {text!r} does not name a field; write {first}.args.NAME=VALUE", "BAD_USAGE")
    try:
        return SetField(
            op="set", step_id=first if is_step else None, path=rest if is_step else place, value=_value(value)
        )
    except ValueError:
        raise PlanError(f"--set {text!r}: {first!r} is not a valid step id", "BAD_USAGE") from None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
