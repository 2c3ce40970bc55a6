"""What a plan did to files is shown with diffs and taken back, and never over what others have changed since."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.provenance.watcher import Undo, Watcher
from plansurvive.activities.workspace.identity import identity_of
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.features.files.file_changes import FileChanges
from plansurvive.features.files.model import ChangesReport, ChangesRequest, Refusal, Restore
from plansurvive.plans.files.changes import CallChanges
from tests.activities.attempts import Attempts


class Plan:
    """Steps of one plan, and its changes."""

    def __init__(self, attempts: Attempts, state: Path, undo: Undo = "files") -> None:
        self.watcher = Watcher(state, undo)
        self.attempts = attempts.but(site=ToolEnvironment(watcher=self.watcher), run_id="plan-p/12345678")
        self.changes = FileChanges(attempts.effects, self.watcher.journal)
        self.workspace = attempts.workspace

    async def step(self, step_id: str, tool: str, **args: object) -> None:
        """Run a step."""
        attempts = self.attempts.but(step=step_id)
        known = {"step_id": step_id, "directory": identity_of(str(self.workspace))}
        call = attempts.call(dict(args)).model_copy(update=known)
        await attempts.run(tool, call)

    def shown(self) -> dict[str, str]:
        """The diffs by path."""
        report = self.changes.answer(ChangesRequest(plan_id="p"))
        return {change.path: change.diff for call in report.calls for change in call.changes}

    def undo(self, step_id: str | None = None, *, dry_run: bool = False, partly: bool = False) -> ChangesReport:
        request = ChangesRequest(plan_id="p", step_id=step_id, undo=True, dry_run=dry_run, partly=partly)
        return self.changes.answer(request)

    def files(self) -> dict[str, str]:
        paths = [path for path in self.workspace.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.workspace)): path.read_text() for path in paths}


@pytest.fixture
def plan(attempts: Attempts, state_dir: Path) -> Plan:
    (attempts.workspace / "old").write_text("one\ntwo\n")
    (attempts.workspace / "gone").write_text("gone\n")
    return Plan(attempts, state_dir)


async def everything(plan: Plan) -> None:
    """A step of every kind."""
    await plan.step("read", "read_file", path="old")
    await plan.step("make", "write_file", path="sub/new", content="new\n")
    await plan.step("edit", "edit_file", path="old", oldText="two", newText="three")
    await plan.step("delete", "delete_file", path="gone")
    await plan.step("folder", "create_directory", path="empty")
    await plan.step(
        "command", "run_command", command="echo four >> old; echo made > made; mkdir -p a/b; ln -s made link"
    )


async def test_everything_is_taken_back(plan: Plan) -> None:
    (plan.workspace / "gone").chmod(0o754)
    before = plan.files()
    await everything(plan)
    report = plan.undo()
    assert (plan.files(), report.refused, report.dry_run) == (before, [], False)
    assert (plan.workspace / "gone").stat().st_mode & 0o777 == 0o754
    assert sorted(path.name for path in plan.workspace.iterdir()) == ["gone", "old", "sub"]


async def test_each_step_is_shown_with_its_diff(plan: Plan) -> None:
    await everything(plan)
    shown = plan.shown()
    assert "+four" in shown["old"]
    assert "+new\n" in shown["sub/new"]
    assert "-gone\n" in shown["gone"]
    report = plan.changes.answer(ChangesRequest(plan_id="p", step_id="edit"))
    assert [(call.step_id, [change.kind for change in call.changes]) for call in report.calls] == [
        ("edit", ["changed"])
    ]


async def test_one_step_is_taken_back(plan: Plan) -> None:
    await everything(plan)
    assert plan.undo("command").refused == []
    assert plan.files() == {"old": "one\nthree\n", "sub/new": "new\n"}
    assert plan.undo("edit").refused == []
    assert plan.files()["old"] == "one\ntwo\n"


async def test_a_dry_run_changes_nothing(plan: Plan) -> None:
    await everything(plan)
    before = plan.files()
    assert {each.path for each in plan.undo(dry_run=True).restored} >= {"old", "gone", "sub/new", "made"}
    assert plan.files() == before


async def test_what_others_changed_since_is_refused_with_a_diff_and_nothing_is_done(plan: Plan) -> None:
    await everything(plan)
    (plan.workspace / "old").write_text("mine\n")
    before = plan.files()
    report = plan.undo()
    assert [(each.path, each.code) for each in report.refused] == [("old", "CONFLICT")]
    assert "+mine" in report.refused[0].diff
    assert plan.files() == before
    assert plan.undo(partly=True).refused
    assert plan.files() == {"old": "mine\n", "gone": "gone\n"}


async def test_undoing_twice_is_undoing_once(plan: Plan) -> None:
    await everything(plan)
    plan.undo()
    (plan.workspace / "old").write_text("mine\n")
    report = plan.undo()
    assert (report.restored, report.refused) == ([], [])
    assert plan.files()["old"] == "mine\n"
    assert all(call.undone for call in plan.changes.answer(ChangesRequest(plan_id="p")).calls)


async def test_what_a_command_changed_that_nobody_had_read_cannot_be_taken_back(plan: Plan) -> None:
    await plan.step("command", "run_command", command="for f in o*d; do echo more >> $f; done; rm gone")
    assert {(each.path, each.code) for each in plan.undo().refused} == {("old", "NOT_KEPT"), ("gone", "NOT_KEPT")}


async def test_what_a_command_changed_can_be_taken_back_where_a_step_read_it_before_or_the_command_names_it(
    plan: Plan,
) -> None:
    (plan.workspace / "named").write_text("before\n")
    before = plan.files()
    await plan.step("read", "read_file", path="old")
    await plan.step("command", "run_command", command="for f in o*d; do echo more >> $f; done; echo after > named")
    assert "-before" in plan.shown()["named"]
    assert (plan.undo().refused, plan.files()) == ([], before)


async def test_with_full_undo_it_can(attempts: Attempts, state_dir: Path) -> None:
    plan = Plan(attempts, state_dir, "full")
    (plan.workspace / "old").write_text("old\n")
    (plan.workspace / "gone").write_text("gone\n")
    before = plan.files()
    await plan.step("command", "run_command", command="echo more >> old; rm gone; echo new > new")
    assert (plan.undo().refused, plan.files()) == ([], before)


async def test_without_undo_nothing_is_kept(attempts: Attempts, state_dir: Path) -> None:
    plan = Plan(attempts, state_dir, "off")
    await plan.step("command", "run_command", command="echo new > new")
    assert plan.shown() == {}


async def test_a_directory_that_others_put_files_into_stays(plan: Plan) -> None:
    await plan.step("folder", "create_directory", path="empty")
    (plan.workspace / "empty" / "mine").write_text("mine")
    assert [each.code for each in plan.undo().refused] == ["CONFLICT"]
    assert plan.files()["empty/mine"] == "mine"


async def test_another_plan_is_not_touched(plan: Plan) -> None:
    await everything(plan)
    before = plan.files()
    assert plan.changes.answer(ChangesRequest(plan_id="p2", undo=True, dry_run=False)).restored == []
    assert plan.files() == before


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("trace", [True, False])
async def test_steps_side_by_side_that_write_one_file_in_turn_are_undone_completely(
    attempts: Attempts, state_dir: Path, trace: bool
) -> None:
    """Each writes a file of its own, one into a directory that all make, and a line into one file."""
    plan = Plan(attempts, state_dir)
    plan.watcher = Watcher(state_dir, trace=trace)
    plan.attempts = plan.attempts.but(site=ToolEnvironment(watcher=plan.watcher))
    (plan.workspace / "log").write_text("begun\n")
    before = plan.files()
    command = "n={}; mkdir -p d/e; echo $n > own_$n; echo $n > d/e/$n; echo $n >> log"
    names = [f"s{number}" for number in range(15)]
    await asyncio.gather(*(plan.step(name, "run_command", command=command.format(name)) for name in names))
    assert sorted((plan.workspace / "log").read_text().split()) == sorted(["begun", *names])
    calls = {call.step_id: call for call in plan.changes.answer(ChangesRequest(plan_id="p", diffs=False)).calls}
    for name in names if trace and os.geteuid() == 0 else ():
        assert {change.path for change in calls[name].changes} - {"d", "d/e"} == {f"own_{name}", f"d/e/{name}", "log"}
        assert not any(change.shared for change in calls[name].changes)
    assert [refusal.code for refusal in plan.undo("s3").refused].count("CONFLICT") > 0
    assert plan.undo().refused == []
    assert plan.files() == before
    assert not (plan.workspace / "d").exists()


def swap(workspace: Path, way: str) -> Path:
    """Put another directory with the same files in the place of the workspace. Returns it."""
    other = workspace.parent / "other"
    shutil.copytree(workspace, other, symlinks=True)
    workspace.rename(workspace.parent / "away")
    if way == "a link":
        workspace.symlink_to(other)
    else:
        other.rename(workspace)
    return workspace


@pytest.mark.parametrize("way", ["a link", "a rename"])
async def test_nothing_is_restored_in_another_directory_under_the_same_path(plan: Plan, way: str) -> None:
    await plan.step("edit", "edit_file", path="old", oldText="two", newText="three")
    await plan.step("command", "run_command", command="echo four >> old; echo made > made")
    before = plan.files()
    swap(plan.workspace, way)
    for partly in (False, True):
        report = plan.undo(partly=partly)
        assert {each.code for each in report.refused} == {"WORKSPACE_MOVED"}
        assert "another directory than the plan changed; put that one back" in report.refused[0].reason
        assert (report.restored, plan.files()) == ([], before)
    # Control: put back, it is undone
    if way == "a link":
        plan.workspace.unlink()
    else:
        plan.workspace.rename(plan.workspace.parent / "copy")
    (plan.workspace.parent / "away").rename(plan.workspace)
    assert plan.undo().refused == []
    assert plan.files() == {"old": "one\ntwo\n", "gone": "gone\n"}


async def test_a_workspace_that_is_swapped_during_the_undo_is_not_entered(plan: Plan) -> None:
    await plan.step("edit", "edit_file", path="old", oldText="two", newText="three")
    changes = _SwappedBetween(plan.changes.effects, plan.changes.journal)
    report = changes.answer(ChangesRequest(plan_id="p", undo=True, dry_run=False, partly=True))
    assert [each.code for each in report.refused] == ["WORKSPACE_MOVED"]
    assert plan.files()["old"] == "one\nthree\n"


class _SwappedBetween(FileChanges):
    """Another plan puts another directory in the place of the workspace after the undo has looked at it."""

    def _restore(
        self, restored: list[Restore], calls: list[CallChanges], places: Mapping[str, Workspace]
    ) -> tuple[list[Restore], list[Refusal]]:
        swap(Path(calls[0].workspace), "a rename")
        return super()._restore(restored, calls, places)
