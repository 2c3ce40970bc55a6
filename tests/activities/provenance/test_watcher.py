"""Whatever wrote a file, the step that did it is named: by looks before and after, not by what the command says."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path

import pytest
import xxhash

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.provenance.journal import CHANGES
from plansurvive.activities.provenance.scan import CACHE_MARK, MAX_ENTRIES, SKIPPED, look
from plansurvive.activities.provenance.watcher import MAX_LISTED, Watcher
from plansurvive.activities.sandbox.sandbox import choose
from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.activities.workspace.effect_log import Effect
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.activity_io import Return
from plansurvive.plans.files.changes import FileChange
from tests.activities.attempts import Attempts
from tests.activities.processes import until
from tests.kit.lacking import require_sandbox


@pytest.fixture
def watched(attempts: Attempts, state_dir: Path) -> Attempts:
    """Attempts on a worker that watches."""
    for name, text in (("old", "old\n"), ("gone", "gone\n"), ("sub/deep", "deep\n")):
        file = attempts.workspace / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return attempts.but(site=ToolEnvironment(watcher=Watcher(state_dir)))


def changes(attempts: Attempts, key: str | None = None) -> dict[str, FileChange]:
    assert attempts.site.watcher
    calls = attempts.site.watcher.journal.of_plan("p")
    return {change.path: change for call in calls for change in call.changes if key in (None, call.key)}


def files(returned: Return) -> tuple[set[str], set[str]]:
    return set(returned.wrote), set(returned.deleted)


WAYS = {
    "sort -o new old": ({"new"}, set()),
    "awk '{print > \"new\"}' old": ({"new"}, set()),
    "perl -e 'open(F, \">new\"); print F 1'": ({"new"}, set()),
    "cp old new; rm gone": ({"new"}, {"gone"}),
    "mv old sub/old": ({"sub/old"}, {"old"}),
    "x=ne; echo hi > ${x}w": ({"new"}, set()),
    "mkdir -p a/b; mkdir c; echo hi > a/b/new": ({"a/b/new", "c"}, set()),
    "rm -r sub": (set(), {"sub/deep"}),
    "ln -s old link": ({"link"}, set()),
    "sed -i s/old/new/ old": ({"old"}, set()),
    "cd sub; split -b 2 deep": ({"sub/xaa", "sub/xab", "sub/xac"}, set()),
    "true": (set(), set()),
    "cat old > /dev/null": (set(), set()),
    "echo hi > new; rm new": (set(), set()),
}


@pytest.mark.parametrize("command", WAYS)
async def test_what_a_command_changes_is_put_down(watched: Attempts, command: str) -> None:
    assert files(await watched.run("run_command", command=command)) == WAYS[command]


async def test_what_a_program_changes_is_put_down(watched: Attempts) -> None:
    code = "import os; name = os.listdir('.')[0]; open('_'.join('ab'), 'w').write(name)"
    assert files(await watched.run("run_python", code=code)) == ({"a_b"}, set())


async def test_a_failed_command_leaves_a_record_as_well(watched: Attempts) -> None:
    error = await watched.error("run_command", command="echo hi > new; rm gone; exit 1")
    assert (set(error.details[0]["wrote"]), error.details[0]["deleted"]) == ({"new"}, ["gone"])
    assert set(changes(watched)) == {"new", "gone"}


async def test_several_attempts_of_one_call_are_one(watched: Attempts) -> None:
    again = watched.but(step="s", again=False)
    await again.error("run_command", command="echo hi > first; exit 1")
    returned = await again.but(again=True).run("run_command", command="echo hi > second")
    assert files(returned) == ({"first", "second"}, set())
    assert files(await again.but(again=True).run("run_command", command="true")) == ({"first", "second"}, set())


@pytest.mark.parametrize("name", ["made", "$(echo made)", "build/made"])
@pytest.mark.parametrize("code", [1, 0])
async def test_what_an_earlier_attempt_created_was_not_there_before_the_call(
    watched: Attempts, name: str, code: int
) -> None:
    """Named in the command, in its own words, in a directory that is not scanned; `code` 0: its result was lost."""
    (watched.workspace / "build").mkdir()
    (watched.workspace / "build" / CACHE_MARK).touch()
    command, call = f"echo hi > {name}; [ -e twice ] || {{ touch twice; exit {code}; }}", watched.but(step="s")
    await (call.run if code == 0 else call.error)("run_command", command=command)
    returned = await call.but(again=True).run("run_command", command=command)
    path = name if "/" in name else "made"
    assert set(returned.wrote) == {path, "twice"}
    made = changes(watched)[path]
    assert (made.kind, made.before) == ("created", "")


@pytest.mark.parametrize("change", ["echo more >> old", "x=ol; rm ${x}d", "mv old build/old"])
async def test_what_was_there_before_a_call_whose_worker_died_is_known_to_the_next_worker(
    watched: Attempts, state_dir: Path, change: str
) -> None:
    """The content is of a file that the plan has read, or that the command names."""
    await watched.run("read_file", path="old")
    command, call = f"mkdir -p build; [ -e twice ] || {{ {change}; touch twice; exit 1; }}", watched.but(step="s")
    await call.error("run_command", command=command)
    later = call.but(again=True, site=ToolEnvironment(watcher=Watcher(state_dir)))
    await later.run("run_command", command=command)
    assert changes(later)["old"].before == xxhash.xxh3_128_hexdigest(b"old\n")


async def test_what_a_call_had_done_whose_worker_died_is_recorded_where_it_is_not_made_again(
    watched: Attempts, state_dir: Path
) -> None:
    await watched.run("read_file", path="old")
    command, call = "echo more >> old; x=ma; echo hi > ${x}de; exit 1", watched.but(step="s")
    await call.error("run_command", command=command)
    shutil.rmtree(state_dir / CHANGES)  # as of a worker that died before it recorded them
    watched.effects.log.begin(Effect("plan-p/s", "call"))
    later = call.but(again=True, repeatable=False, site=ToolEnvironment(watcher=Watcher(state_dir)))
    error = await later.error("run_command", command=command)
    assert error.type == "OUTCOME_UNKNOWN"
    assert set(error.details[0]["wrote"]) == {"old", "made"}
    assert changes(later)["old"].before == xxhash.xxh3_128_hexdigest(b"old\n")


async def test_a_touched_file_whose_content_is_known_is_not_changed(watched: Attempts) -> None:
    await watched.run("run_command", command="echo hi > new")
    assert files(await watched.run("run_command", command="find . -name new -exec touch {} ';'")) == (set(), set())


async def test_what_a_command_made_the_run_knows_and_what_it_changed_must_be_read_again(watched: Attempts) -> None:
    returned = await watched.run("run_command", command="echo hi > new; echo hi >> old")
    assert returned.wrote["new"] is not None
    assert returned.wrote["old"] is None


async def test_directories_that_hold_no_work_are_left_out(watched: Attempts) -> None:
    lines = [f"mkdir -p {name}; touch {name}/x" for name in sorted(SKIPPED)]
    (watched.workspace / "script").write_text("\n".join([*lines, "mkdir m; cp old m/CACHEDIR.TAG; touch m/y z"]))
    wrote, _ = files(await watched.run("run_command", command="sh script"))
    assert wrote == {"m", "z"}


async def test_a_redirection_into_a_directory_that_is_left_out_is_found_all_the_same(watched: Attempts) -> None:
    (watched.workspace / "node_modules").mkdir()
    assert files(await watched.run("run_command", command="echo hi > node_modules/x")) == ({"node_modules/x"}, set())


async def test_what_a_file_tool_writes_meanwhile_is_not_the_commands(watched: Attempts) -> None:
    slow = asyncio.ensure_future(
        watched.run("run_command", command="echo > begun; until [ -e go ]; do sleep 0.02; done")
    )
    await until(lambda: (watched.workspace / "begun").exists())
    await watched.run("write_file", path="theirs", content="x")
    await watched.run("write_file", path="go", content="x")
    assert files(await slow) == ({"begun"}, set())


async def test_very_many_files_are_counted_and_not_listed(watched: Attempts) -> None:
    returned = await watched.run("run_command", command=f"mkdir d; cd d; seq {MAX_LISTED + 50} | xargs touch")
    assert (len(returned.wrote), returned.more_files) == (MAX_LISTED, 50)


async def test_a_workspace_that_is_too_large_is_said_to_be(watched: Attempts, state_dir: Path) -> None:
    small = watched.but(site=ToolEnvironment(watcher=Watcher(state_dir, most=2)))
    returned = await small.run("run_command", command="echo hi > new; cp old other")
    assert "too large" in returned.warnings[0]
    assert files(returned) == ({"new", "other"}, set())  # by the command's own words
    assert MAX_ENTRIES >= 10_000


@tool
async def secretive(context: ToolContext) -> None:
    """Write a file and say nothing."""
    Path(context.workspace.root, "quiet").write_text("x")


@tool(effect="pure")
async def reader(context: ToolContext) -> None:
    """Say that nothing is changed."""
    Path(context.workspace.root, "lie").write_text("x")


@pytest.mark.parametrize(("chosen", "wanted"), [(secretive, {"quiet"}), (reader, set())])
async def test_tools_of_a_user_are_watched_unless_they_only_read(
    watched: Attempts, chosen: Tool, wanted: set[str]
) -> None:
    assert files(await watched.run(chosen)) == (wanted, set())


async def test_the_workers_own_state_is_never_listed(attempts: Attempts) -> None:
    state = attempts.workspace / "state"
    state.mkdir()
    watched = attempts.but(site=ToolEnvironment(sandbox=choose("off"), watcher=Watcher(state)))
    assert files(await watched.run("run_command", command="echo hi > new")) == ({"new"}, set())


async def test_protected_files_that_a_command_made_or_changed_are_told(watched: Attempts) -> None:
    hooks = watched.workspace / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("old")
    (watched.workspace / ".env").write_text("A=1\n")
    quiet = await watched.run("run_command", command="cat .env; echo x > new; echo x > .git/other")
    assert quiet.warnings == []
    command = "echo B=2 >> .env; echo x > AGENTS.md; echo x > .git/hooks/pre-commit; echo x > .git/hooks/pre-push"
    told = await watched.run("run_command", command=command)
    (text,) = told.warnings
    for name in (".env", "AGENTS.md", ".git/hooks/pre-commit", ".git/hooks/pre-push"):
        assert f"'{name}'" in text


async def test_a_protected_file_that_the_host_replaces_while_a_command_runs_is_warned_of_when_that_writes_to_it(
    attempts: Attempts, state_dir: Path
) -> None:
    """A known gap: with the file that was bound, its name loses its protection (docs/security.md, Not defended)."""
    require_sandbox("bwrap")
    confined = attempts.but(site=ToolEnvironment(sandbox=choose("auto", state=state_dir), watcher=Watcher(state_dir)))
    config = attempts.workspace / ".git" / "config"
    config.parent.mkdir()
    config.write_text("old\n")
    command = "echo early >> .git/config; touch began; until [ -e go ]; do sleep 0.05; done; echo late >> .git/config"
    running = asyncio.create_task(confined.run("run_command", command=command))
    await until(lambda: (attempts.workspace / "began").exists())
    config.with_name("config.lock").write_text("by git\n")
    config.with_name("config.lock").rename(config)
    (attempts.workspace / "go").touch()
    told = await running
    assert config.read_text() == "by git\nlate\n", "it was protected until it was replaced, and then no more"
    assert any("'.git/config'" in text for text in told.warnings), told.warnings


def test_looks_see_protected_files(watched: Attempts) -> None:
    for name in (".git/hooks/x", "sub/.env", "AGENTS.md", ".github/workflows/ci.yml", "plain.py"):
        file = watched.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    found = set(look(str(watched.workspace)).protected)
    assert {".git/hooks", ".git/config", "sub/.env", "AGENTS.md", ".github"} <= found
    assert "plain.py" not in found


class LateToRecord(ToolContext):
    """The context of a call whose changes are recorded only when another call has ended."""

    def __init__(self, attempts: Attempts) -> None:
        call = attempts.but(step="late").call({})
        super().__init__(call, Workspace(str(attempts.workspace)), attempts.effects, "run_command", False)
        self.has_looked, self.other_ended = threading.Event(), threading.Event()

    def warn(self, text: str) -> None:
        """Called between the look at the workspace and the record, as the call changes a protected file."""
        super().warn(text)
        self.has_looked.set()
        assert self.other_ended.wait(30)


async def test_a_call_that_ends_while_another_is_recorded_takes_nothing_from_that_record(
    attempts: Attempts, watched: Attempts, state_dir: Path
) -> None:
    watcher, late, workspace = Watcher(state_dir, trace=False), LateToRecord(attempts), attempts.workspace
    (workspace / ".git" / "hooks").mkdir(parents=True)
    tool = attempts.context("write_file")

    async def ending_late() -> None:
        async with watcher.watching(late, {"command": "echo more >> old"}):
            (workspace / "old").write_text("old\nmore\n")
            (workspace / ".git" / "hooks" / "pre-commit").write_text("")
            (workspace / "theirs").write_text("of a file tool\n")
            tool.wrote("theirs")
            watcher.wrote(tool)

    async with watcher.watching(attempts.but(step="other").context("run_command"), {}):
        ending = asyncio.create_task(ending_late())
        assert await asyncio.to_thread(late.has_looked.wait, 30)
    late.other_ended.set()
    await ending
    found = changes(watched.but(site=ToolEnvironment(watcher=watcher)), late.call.key)
    assert ("theirs" in found, found["old"].before) == (False, xxhash.xxh3_128_hexdigest(b"old\n"))
