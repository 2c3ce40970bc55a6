"""Commands about file changes made by plans: files, undo."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import typer

from plansurvive.client.cli.follow.ctrl_c import after_ctrl_c
from plansurvive.client.cli.follow.follow import follow
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, Id, OfStep
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.ids import plan_id
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Started, Summary
from plansurvive.features.files.model import ChangesReport
from plansurvive.features.files.verbs import Undone, file_changes, undo_whole, would_undo
from plansurvive.plans.files.changes import CallChanges, FileChange, one_of
from plansurvive.plans.text.safe_text import line, quoted, safe

REFUSED = 1
_MARKS = {"created": "+", "changed": "~", "deleted": "-"}


def files(
    plan: Id,
    step: OfStep = None,
    diffs: Annotated[bool, typer.Option("--diff/--no-diff", help="Show a diff for each file.")] = True,
    as_json: AsJson = False,
) -> None:
    """Show the files that each step created, changed and deleted."""
    report = session.run(lambda here: file_changes(here.client, plan, step, diffs=diffs))
    if as_json:
        output.show_json(report.model_dump(mode="json", include={"calls"}, exclude_none=True))
    elif not report.calls:
        output.say("No file changes recorded.")
    for call in [] if as_json else report.calls:
        output.show("\n".join(_rows(call)))


def undo(
    plan: Id,
    step: OfStep = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be undone.")] = False,
    partly: Annotated[
        bool, typer.Option("--partly", help="Undo what can be undone, even if not everything can.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve every `undo` of the plan's steps in advance.")] = False,
    as_json: AsJson = False,
) -> None:
    """Undo a plan or one step: run each `undo`, restore files. Files that others changed since are left alone."""
    undoing = Undoing(plan, step, dry_run=dry_run, partly=partly, yes=yes, as_json=as_json)
    try:
        undone = session.run(undoing.run, starts=not dry_run)
    except KeyboardInterrupt:
        raise typer.Exit(after_ctrl_c(undoing.begun)) from None
    if as_json:
        report = undone.report.model_dump(mode="json", exclude={"calls"}, exclude_none=True)
        calls = [call.model_dump(mode="json") for call in undone.calls]
        output.show_json(report | ({"undo": calls, "undoPlan": undoing.begun} if calls or undoing.begun else {}))
    else:
        chosen = [quoted(step)] if step else []
        _show(undone, " ".join(["plan undo", line(plan_id(plan)), *chosen, *(["--yes"] if yes else [])]))
    raise typer.Exit(REFUSED if undone.report.refused or not undone.is_whole else 0)


def _rows(call: CallChanges) -> list[str]:
    tool = f" ({line(call.tool)})" if call.tool else ""
    undone = ", undone since" if call.undone else ""
    rows = [f"{line(call.step_id)}{tool}{undone}"]
    for change in call.changes:
        rows.append(
            f"  {_MARKS[change.kind]} {line(change.path)}{_remark(call.step_id, change, whole=call.undone is not None)}"
        )
        rows += [f"      {safe(row)}" for row in change.diff.splitlines()]
    return rows + ([f"  and {call.more} more"] if call.more else [])


def _remark(step_id: str, change: FileChange, *, whole: bool) -> str:
    """`whole`: its call was undone as a whole."""
    remarks = [
        line(one_of(step_id, change.others)) if change.shared else "",
        "previous content unknown" if change.before is None else "",
        "undone since" if change.undone is not None and not whole else "",
    ]
    return "".join(f"  ({remark})" for remark in remarks if remark)


def _show(undone: Undone, again: str) -> None:
    """`again`: the command, for another time."""
    report = undone.report
    for call in undone.calls if report.dry_run else ():
        args = json.dumps(call.args, ensure_ascii=False)
        what = f"call {line(call.tool)}" if call.tool else "run"
        output.show(f"  would {what} {line(args)} (undo of step {line(call.step_id)})")
    if not undone.is_whole and not report.dry_run:
        output.say(f"Not every step could be undone; files are as they were. See: plan show {undone.undo_plan}")
        output.say(f"To undo the rest: {again}")
        return
    restored = [each for each in report.restored if each.expected != each.target]
    restores, deletes = ("would restore", "would delete") if report.dry_run else ("restored", "deleted")
    for each in restored:
        output.show(f"  {restores if each.target else deletes} {line(each.path)}")
    for refusal in report.refused:
        rows = [f"  {refusal.code} {line(refusal.path)} (step {line(refusal.step_id)}): {line(refusal.reason)}"]
        output.show("\n".join([*rows, *(f"      {safe(row)}" for row in refusal.diff.splitlines())]))
    if not restored and not report.refused and undone.calls and not report.dry_run:
        return
    output.say(_sentence(report, len(restored) + len(undone.calls), undone.before))


def _sentence(report: ChangesReport, restored: int, before: str) -> str:
    """One sentence for the result of the whole undo; `before`: that of an earlier one."""
    if report.dry_run and report.refused:
        return "Nothing was undone. Use --partly to undo what can be undone." if restored else "Nothing was undone."
    if not restored and not report.refused:
        return f"Nothing to undo: {before}." if before else "Nothing to undo."
    if report.dry_run:
        return "Dry run: nothing was undone."
    return f"{restored} undone, {len(report.refused)} left unchanged." if report.refused else f"{restored} undone."


@dataclass
class Undoing:
    """One call of the command."""

    plan: str
    step: str | None
    dry_run: bool
    partly: bool
    yes: bool
    as_json: bool
    begun: str | None = None
    """Id of the plan that runs the undos, once there is one."""

    async def run(self, here: Connected) -> Undone:
        """Undo steps and files, or say what would be undone."""
        if self.dry_run:
            return await would_undo(here.client, self.plan, self.step, partly=self.partly)

        async def to_its_end(started: Started) -> Summary:
            self.begun = started.plan_id
            if self.as_json:
                return await runs.wait(here.client, started.plan_id)
            output.show(f"plan {started.plan_id}")
            return await follow(here, started.plan_id, as_json=False)

        return await undo_whole(here.client, self.plan, self.step, to_its_end, partly=self.partly, yes=self.yes)
