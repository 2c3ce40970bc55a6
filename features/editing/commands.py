"""Commands that change a plan: edit, add, remove, move, skip, unskip. Each prints the diff."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any

import typer

from plansurvive.client.cli.terminal import session
from plansurvive.client.cli.terminal.edited import Expect, report
from plansurvive.client.cli.terminal.options import AsJson, By, Comment, Id, Step, complete_step
from plansurvive.client.cli.terminal.session import author
from plansurvive.client.plan_file import load
from plansurvive.features.editing import verbs
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.editing.apply_edits import PLAN_FIELDS, STEP_FIELDS, STEP_SHAPE, STEPS_ARE_CHANGED
from plansurvive.plans.editing.edits import AddStep, Edit, MoveStep, RemoveStep, SetField, SkipStep, UnskipStep
from plansurvive.plans.editing.step_places import setting_of
from plansurvive.plans.errors import PlanError
from plansurvive.plans.expressions.json_path import first_name
from plansurvive.plans.model import Plan
from plansurvive.plans.run.unknown_step import is_field

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
    if "steps" in step and "id" not in step:
        raise PlanError(f"{file} is a plan; `plan add` takes one step: {STEP_SHAPE}", "PLAN_SCHEMA")
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


def _apply(plan: str, edits: list[Edit], by: str | None, comment: str, expect: int | None, as_json: bool) -> None:
    found = session.run(
        lambda here: verbs.edit(here.client, plan, edits, expect_version=expect, by=author(by), why=comment)
    )
    report(plan, found, as_json)


def _set(text: str) -> SetField:
    """Parse `STEP.FIELD=VALUE` or `FIELD=VALUE`; the value is parsed as JSON if possible."""
    first, rest, value = setting_of(text)
    place = f"{first}.{rest}" if rest else first
    if value is None or not place:
        raise PlanError(f"--set {text!r} is not STEP.FIELD=VALUE", "BAD_USAGE")
    is_step = first_name(rest) in STEP_FIELDS or first_name(first) not in PLAN_FIELDS
    if is_step and not rest and (meant := _of_plan(first)):
        raise PlanError(f"--set {text!r}: {meant}", "BAD_USAGE")
    if is_step and not rest and is_field(first):
        raise PlanError(f"--set {text!r} names no step; write STEP.{text}", "BAD_USAGE")
    if is_step and not rest:
        raise PlanError(f"--set {text!r} does not name a field; write {first}.args.NAME=VALUE", "BAD_USAGE")
    found: Any = value
    with suppress(ValueError):
        found = json.loads(value)
    try:
        return SetField(op="set", step_id=first if is_step else None, path=rest if is_step else place, value=found)
    except ValueError:
        raise PlanError(f"--set {text!r}: {first!r} is not a valid step id", "BAD_USAGE") from None


def _of_plan(name: str) -> str:
    """What is said of a field of the plan that cannot be set, or a misspelt one; empty: it may be the id of a step."""
    if name == "steps":
        return f"{STEPS_ARE_CHANGED}=VALUE, with `plan add`, `remove`, `move` and `edit`"
    known = ", ".join(sorted(PLAN_FIELDS))
    if name in {field.alias or key for key, field in Plan.model_fields.items()}:
        return f"'{name}' of a plan cannot be set; set one of {known}"
    near = Hints().near(name, PLAN_FIELDS)
    return f"did you mean {near}=VALUE? A field of a step is STEP.FIELD=VALUE" if near else ""
