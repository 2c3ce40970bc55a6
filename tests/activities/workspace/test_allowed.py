"""Which directories may be workspaces: what is never one, what the settings allow, and what a person can grant."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.lifecycle.check_plan import PlanChecker
from plansurvive.activities.lifecycle.offered import FileComparer
from plansurvive.activities.lifecycle.snapshot_workspace import SnapshotTaker
from plansurvive.activities.provenance.journal import Journal
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.features.files.file_changes import FileChanges
from plansurvive.features.files.model import ChangesRequest
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.files.file_check import FilesSeen
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.plans.llm.snapshot import SnapshotRequest
from plansurvive.runtime.base.code_place import CODE
from plansurvive.runtime.settings import SettingError, Settings
from tests.activities.attempts import Attempts

SYSTEM = (
    "/", "//", "/.", "/etc", "/etc/cron.d", "/etc/../etc", "/usr", "/usr/local/bin", "/usr/lib/python3", "/bin", "/lib",
    "/boot", "/dev", "/dev/shm", "/proc", "/proc/self/root/etc", "/proc/self/cwd/../../../../../etc", "/sys", "/run",
    "/var", "/var/tmp", "/var/lib", "/var/lib/dpkg", "/var/spool", "/var/run", "/tmp", "/home", "/root", "/opt", "/mnt",
)  # fmt: skip
OUR_CODE = (
    CODE, CODE.parent, CODE / "plansurvive", CODE / "activities" / "tools", CODE / "client" / "cli",
    *(path.resolve() for path in (CODE / "plansurvive").iterdir() if path.is_dir() and path.is_symlink()),
    Path(sys.prefix), Path(sys.prefix) / "lib", Path(sys.prefix).parent, Path(sys.base_prefix),
)  # fmt: skip
IN_A_HOME = (
    "", ".", ".ssh", ".ssh/keys", ".aws", ".gnupg", ".config", ".config/autostart", ".kube", ".docker", ".local/bin",
    ".local/lib/python3.11", ".local/share/applications", ".local/state", ".mozilla/firefox", ".password-store", "bin",
    ".cargo/bin", ".npm", "proj/.git", "proj/.git/hooks", "proj/.vscode", "proj/.github/workflows", "proj/.claude",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "people" / "ann"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def rules(home: Path, state_dir: Path) -> WorkspaceRules:
    return WorkspaceRules(home=str(home), state=str(state_dir))


def every_way(rules: WorkspaceRules, path: str) -> Iterator[str]:
    """The refusals of a directory that nobody allowed, that the person granted, and that the worker's settings name."""
    yield rules.refusal(path)
    yield rules.refusal(path, [path])
    for listed in ((path,), ("/",)):
        yield WorkspaceRules(listed, path, rules.state, home=rules.home).refusal(path, [path, "/"])


def all_refused(rules: WorkspaceRules, path: Path | str) -> bool:
    return all("is never a workspace; name another directory" in text for text in every_way(rules, str(path)))


@pytest.mark.parametrize("path", SYSTEM)
def test_directories_of_the_system_are_never_workspaces(rules: WorkspaceRules, tmp_path: Path, path: str) -> None:
    assert all_refused(rules, path)
    (tmp_path / "link").symlink_to(path)
    assert all_refused(rules, tmp_path / "link")


def test_a_directory_of_the_system_under_another_name_is_one(home: Path, tmp_path: Path) -> None:
    """As with a bind mount, or a file system that ignores letter case: the path alone says nothing."""
    (tmp_path / "state" / "values").mkdir(parents=True)
    rules = WorkspaceRules(home=str(home), state=str(tmp_path / "state"))
    assert rules.refusal(str(home / "work")) == ""
    (tmp_path / "state").rename(tmp_path / "plain")
    for path in (tmp_path / "plain", tmp_path / "plain" / "values"):
        assert "under another name, which is never a workspace" in rules.refusal(str(path), [str(path)])


@pytest.mark.parametrize("path", OUR_CODE, ids=str)
def test_our_code_and_that_of_the_interpreter_is_not_for_plans_to_change(rules: WorkspaceRules, path: Path) -> None:
    assert all_refused(rules, path)


def test_a_project_in_whose_environment_we_are_hears_where_that_is(rules: WorkspaceRules) -> None:
    project = Path(sys.prefix).parent
    said = rules.refusal(str(project))
    assert f"contains this program, in '{project}/" in said
    assert "' (`pipx install plansurvive` and " in said


def test_a_directory_beside_our_code_is_a_workspace_as_any_other(rules: WorkspaceRules) -> None:
    for path in (CODE / "first", CODE / "examples" / "csv-cleanup"):
        assert rules.refusal(str(path), [str(path)]) == ""


@pytest.mark.parametrize("path", IN_A_HOME)
def test_homes_and_what_they_hide_are_never_workspaces(rules: WorkspaceRules, home: Path, path: str) -> None:
    (home / path).mkdir(parents=True, exist_ok=True)
    assert all_refused(rules, home / path)


def test_what_contains_a_home_is_none_either(rules: WorkspaceRules, home: Path, tmp_path: Path) -> None:
    assert all_refused(rules, home.parent)
    assert all_refused(rules, tmp_path)


def test_the_state_directory_and_what_is_in_it_are_none(rules: WorkspaceRules, state_dir: Path, tmp_path: Path) -> None:
    (state_dir / "values").mkdir()
    (tmp_path / "link").symlink_to(state_dir / "values")
    for path in (state_dir, state_dir / "values", tmp_path / "link"):
        assert all_refused(rules, path)


def test_by_default_a_plan_works_below_the_home_or_where_a_person_says(
    rules: WorkspaceRules, home: Path, workspace: Path, tmp_path: Path
) -> None:
    assert rules.refusal(str(home / "work" / "deep")) == ""
    assert "neither in the home directory" in rules.refusal(str(workspace))
    assert rules.refusal(str(workspace), [str(workspace)]) == ""
    assert rules.refusal(str(workspace / "sub"), [str(workspace)]) == ""
    assert rules.refusal(f"{workspace}-beside", [str(workspace)]) != ""
    assert rules.refusal(str(workspace), ["/", "", "."]) != ""
    (workspace / "out").symlink_to(tmp_path / "elsewhere")
    assert rules.refusal(str(workspace / "out"), [str(workspace)]) != ""
    hidden = home / ".cache" / "work"
    hidden.mkdir(parents=True)
    assert rules.refusal(str(hidden)) != ""
    assert rules.refusal(str(hidden), [str(hidden)]) == ""


def test_the_workers_list_is_all_that_counts_where_there_is_one(home: Path, workspace: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    rules = WorkspaceRules((str(workspace),), str(own), home=str(home))
    assert rules.refusal(str(workspace / "sub")) == ""
    assert rules.refusal(str(own)) == ""
    for path in (home / "work", tmp_path / "granted"):
        assert "is not below PLANS_WORKSPACES of the worker" in rules.refusal(str(path), [str(path)])


def test_the_home_of_a_service_user_is_no_directory_of_the_system() -> None:
    rules = WorkspaceRules(home="/var/lib/builder")
    assert rules.refusal("/var/lib/builder/work") == ""
    assert rules.refusal("/var/lib/builder") != ""
    assert WorkspaceRules(home="/usr/sbin").refusal("/usr/sbin/work") != ""
    assert WorkspaceRules(home="/").refusal("/srv/work") != ""


def test_a_pattern_of_the_worker_opens_a_protected_directory(home: Path) -> None:
    (home / "proj" / ".claude" / "worktrees").mkdir(parents=True)
    path = str(home / "proj" / ".claude" / "worktrees")
    assert WorkspaceRules(home=str(home)).refusal(path) != ""
    assert WorkspaceRules(home=str(home), names=ProtectedNames(("*.sql", "*", "!.claude"))).refusal(path) == ""


@pytest.mark.parametrize("text", ["/no/such/place", "/", "/dev/null", "//"])
def test_a_list_that_cannot_be_meant_is_refused_at_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError) as caught:
        Settings.read({"HOME": str(tmp_path), "PLANS_WORKSPACES": f"{tmp_path},{text}"})
    assert caught.value.code == "BAD_SETTING:PLANS_WORKSPACES"


def test_the_check_of_a_plan_says_what_is_refused_and_which_setting_decides(
    rules: WorkspaceRules, workspace: Path, home: Path
) -> None:
    checker = PlanChecker({}, rules=rules)
    allowed = checker.check_plan(CheckRequest(workspace=str(workspace)))
    assert (allowed.problems, allowed.workspace) == ([], str(workspace))
    (problem,) = checker.check_plan(CheckRequest(workspace=str(workspace), granted=[str(home)])).problems
    assert (problem.code, problem.field) == ("WORKSPACE_REFUSED", "workspace")
    assert "PLANS_WORKSPACES" in problem.message
    assert checker.check_plan(CheckRequest(workspace="/etc", granted=["/etc"])).problems[0].code == "WORKSPACE_REFUSED"
    own = PlanChecker({}, str(workspace), WorkspaceRules(own=str(workspace), home=str(home)))
    assert own.check_plan(CheckRequest()).problems == []


def test_a_workspace_whose_path_is_not_utf_8_is_a_problem_of_the_plan(workspace: Path) -> None:
    (workspace / os.fsdecode(b"odd\xff")).mkdir()
    (workspace / "link").symlink_to(os.fsdecode(b"odd\xff"))
    facts = PlanChecker({}).check_plan(CheckRequest(workspace=str(workspace / "link")))
    assert [problem.code for problem in facts.problems] == ["BAD_WORKSPACE"]
    assert "not UTF-8" in facts.problems[0].message
    assert facts.model_dump_json()


async def test_each_step_looks_again_where_its_workspace_is(
    attempts: Attempts, rules: WorkspaceRules, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "sub").mkdir()
    guarded = attempts.but(site=ToolEnvironment(rules=rules), workspace=workspace / "sub")
    await guarded.run("write_file", path="a.txt", content="x")
    (workspace / "sub").rename(tmp_path / "aside")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for target in (secrets, Path("/etc"), Path(rules.state)):
        (workspace / "sub").unlink(missing_ok=True)
        (workspace / "sub").symlink_to(target)
        assert await guarded.code("write_file", path="b.txt", content="x") == "WORKSPACE_REFUSED"
        assert await guarded.code("run_command", command="touch b.txt") == "WORKSPACE_REFUSED"
        assert not (target / "b.txt").exists()
    for path in ("/etc", "/", str(rules.home)):
        assert await guarded.but(workspace=Path(path)).code("list_directory") == "WORKSPACE_REFUSED"


async def test_what_is_asked_beside_steps_looks_as_well(rules: WorkspaceRules, attempts: Attempts) -> None:
    site = ToolEnvironment(rules=rules)
    with pytest.raises(ToolError) as caught:
        SnapshotTaker(site=site).take(SnapshotRequest(workspace="/etc"))
    assert caught.value.code == "WORKSPACE_REFUSED"
    seen = FilesSeen(workspace="/etc", stamps={"passwd": Stamp(hash="0", size=1)})
    found = ActivityEnvironment().run(FileComparer(site).compare_files, seen)
    assert (found.changed, found.deleted) == ([], ["passwd"])
    workspace = attempts.workspace
    await attempts.but(run_id="plan-p").run("write_file", path="a.txt", content="x")
    changes = FileChanges(attempts.effects, Journal(workspace.parent / "journal"), rules)
    assert changes.answer(ChangesRequest(plan_id="p", undo=True)).restored
    workspace.rename(workspace.parent / "aside")
    workspace.symlink_to("/etc")
    with pytest.raises(ToolError) as caught:
        changes.answer(ChangesRequest(plan_id="p", undo=True, dry_run=False))
    assert caught.value.code == "WORKSPACE_REFUSED"


async def test_file_tools_never_enter_our_state_where_a_workspace_contains_it(
    attempts: Attempts, rules: WorkspaceRules, workspace: Path, state_dir: Path
) -> None:
    state = workspace / "deep" / "state"
    (state / "values").mkdir(parents=True)
    (state / "worker-1.json").write_text("{}")
    (workspace / "link").symlink_to("deep/state")
    within = WorkspaceRules(own=str(workspace), state=str(state), home=rules.home)
    guarded = attempts.but(site=ToolEnvironment(rules=within))
    for path in ("deep/state/worker-1.json", "deep/state/new", "link/worker-1.json", f"{state}/values/x", "deep/state"):
        assert await guarded.code("write_file", path=path, content="x") == "PATH_OUTSIDE", path
        assert await guarded.code("read_file", path=path) == "PATH_OUTSIDE", path
    assert await guarded.code("create_directory", path="deep/state/more") == "PATH_OUTSIDE"
    assert await guarded.code("delete_file", path="deep/state/worker-1.json") == "PATH_OUTSIDE"
    assert await guarded.code("list_directory", path="link") == "PATH_OUTSIDE"
    assert await guarded.value("find_files", pattern="**/*.json") == []
    assert await attempts.value("find_files", pattern="**/*.json") == ["deep/state/worker-1.json"]


@pytest.mark.parametrize("spelled", ["/", "//", "/.", "/./", "/..", "/proc/self/root", "/etc/.."])
def test_a_grant_of_the_root_in_any_spelling_grants_nothing(
    rules: WorkspaceRules, tmp_path: Path, spelled: str
) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    assert "neither in the home" in rules.refusal(str(place), [spelled])
    assert rules.refusal(str(place), [str(place)]) == ""


@pytest.mark.parametrize("path", ["/x\0y", "/proc/1/root/tmp/../etc", "/proc/1/cwd/../etc"])
def test_a_path_that_cannot_be_followed_is_refused_and_no_fault(rules: WorkspaceRules, path: str) -> None:
    assert rules.refusal(path, [path])
    with pytest.raises(ToolError, match="workspace"):
        rules.check_recorded(path)


def test_a_workspace_that_becomes_a_link_after_a_step_is_refused_to_the_next(rules: WorkspaceRules, home: Path) -> None:
    work, hidden = home / "projects" / "work", home / ".ssh" / "keys" / "work"
    for folder in (work, hidden):
        folder.mkdir(parents=True)
    for _ in range(2):
        rules.check_recorded(str(work))
    (home / "projects").rename(home / "before")
    (home / "projects").symlink_to(hidden.parent)
    with pytest.raises(ToolError, match="never a workspace"):
        rules.check_recorded(str(work))
    (home / "projects").unlink()
    (home / "before").rename(home / "projects")
    rules.check_recorded(str(work))
