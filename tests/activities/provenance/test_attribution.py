"""Of steps side by side, each is named for what its own processes did, and where that is not known, it is said so."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.provenance.scan import look
from plansurvive.activities.provenance.watcher import Watcher
from plansurvive.activities.sandbox.process import Order, tried
from plansurvive.activities.sandbox.sandbox import Level, Sandbox
from plansurvive.activities.tools.tool import tool
from plansurvive.plans.activity_io import Return
from plansurvive.plans.files.changes import FileChange
from tests.activities.attempts import Attempts
from tests.activities.processes import until
from tests.kit.lacking import require_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are traced on Linux only")

Steps = Callable[..., "Parallel"]


class Parallel:
    """Steps of one plan that run at the same time in one workspace."""

    def __init__(self, attempts: Attempts, state: Path, *, level: Level = "bwrap", trace: bool = True) -> None:
        if level != "none":
            require_sandbox(level)
        elif os.geteuid() != 0:
            pytest.skip("without a sandbox only the commands of a root worker are traced")
        self.watcher, self.state = Watcher(state, trace=trace), state
        sandbox = Sandbox(level, state=state)
        self.attempts = attempts.but(site=ToolEnvironment(watcher=self.watcher, sandbox=sandbox))
        self.workspace = attempts.workspace

    async def step(self, step_id: str, command: str, tool: str = "run_command", *, again: bool = False) -> Return:
        """Run a step; `command` is its command, or its arguments as JSON for another tool."""
        args = {"command": command} if tool == "run_command" else json.loads(command)
        attempts = self.attempts.but(step=step_id, again=again)
        return await attempts.run(tool, attempts.call(args).model_copy(update={"step_id": step_id}))

    def start(self, step_id: str, command: str) -> asyncio.Task[Return]:
        """Start a step."""
        return asyncio.ensure_future(self.step(step_id, command))

    async def sees(self, name: str) -> None:
        """Wait for a file."""
        await until(lambda: os.path.lexists(self.workspace / name))

    def changes(self, step_id: str) -> dict[str, FileChange]:
        """What is in the journal for a step."""
        calls = self.watcher.journal.of_plan("p")
        return {change.path: change for call in calls if call.step_id == step_id for change in call.changes}


@pytest.fixture
def parallel(attempts: Attempts, state_dir: Path) -> Steps:
    return lambda **how: Parallel(attempts, state_dir, **how)


def listed(returned: Return) -> set[str]:
    return {*returned.wrote, *returned.deleted}


WAIT = "until [ -e go ]; do sleep 0.02; done; sleep 0.2"
"""A file tool's write is recorded just after its file is there."""
LEVELS = ["bwrap", "landlock", "none"]


@pytest.mark.parametrize("level", LEVELS)
async def test_three_commands_side_by_side_list_their_own_files_and_one_that_sleeps_lists_none(
    parallel: Steps, level: Level
) -> None:
    steps = parallel(level=level)
    idle = steps.start("c", f": > begun; {WAIT}")
    await steps.sees("begun")
    first, second = await asyncio.gather(
        steps.step("a", "x=a; echo a > $x.txt"), steps.step("b", "mkdir d; cd d; awk 'BEGIN {print 1 > \"b.txt\"}'")
    )
    await steps.step("go", '{"path": "go", "content": ""}', "write_file")
    last = await idle
    assert [listed(each) for each in (first, second, last)] == [{"a.txt"}, {"d/b.txt"}, {"begun"}]
    assert [each.shared for each in (first, second, last)] == [[], [], []]
    assert [each.warnings for each in (first, second, last)] == [[], [], []]
    assert first.wrote["a.txt"] is not None  # and so it can be edited without reading it again


CHANGES = {
    "a rename of a directory": "mv full moved",
    "a rename of a directory through a link": "ln -s . here; mv here/full here/moved",
    "a hard link and what is written through it": "ln old linked; echo more >> linked",
    "another name of a file that has two": "ln two/a two/c; echo more >> two/a",
    "a symbolic link and what is written through it": "ln -s ../old full/link; echo more >> full/link",
    "a link that leads there by another link": "ln -s old one; ln -s one other; echo more >> other",
    "a process that leaves its session": "setsid sh -c 'sleep 0.05; echo > late' & wait",
    "a background process that outlives its parent": "(sh -c 'sleep 0.05; echo > late' &); sleep 0.2",
    "a thread": 'python3 -c \'import threading; threading.Thread(target=open, args=("t", "w")).start()\'',
    "an unnamed file that is given a name": (
        'python3 -c \'import ctypes, os; f = os.open(".", os.O_TMPFILE | os.O_RDWR);'
        'ctypes.CDLL(None).linkat(-100, b"/proc/self/fd/%d" % f, -100, b"named", 0x400)\''
    ),
    "memory mapped to a file": (
        'python3 -c \'import mmap, os; f = os.open("old", os.O_RDWR); m = mmap.mmap(f, 4); m[:1] = b"X"; m.flush()\''
    ),
    "truncation": "python3 -c 'import os; os.truncate(\"old\", 1)'",
    "a path through a descriptor": 'exec 7< full; python3 -c \'open("/proc/self/fd/7/new", "w")\' 7<&7',
    "a descriptor that is opened again for writing": "exec 7< old; echo more >> /proc/self/fd/7",
    "permissions": "chmod 600 old",
    "a named pipe": "mkfifo pipe",
    "a socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"full/s\")'",
    "a working directory that has been renamed": "cd full; mv ../full ../other; echo > inside",
    "a name that is not UTF-8": 'python3 -c \'open(b"\\xff\\\\x41\\n", "w")\'',
    "a path of 200 directories": "p=$(printf 'dddddddd/%.0s' $(seq 150)); mkdir -p $p; echo > $p/x",
    "deletion": "rm -r full two",
    "many processes": 'for i in 1 2 3 4 5 6 7 8; do (for j in 1 2 3 4; do sh -c "echo > p$i.$j"; done) & done; wait',
}


async def test_whatever_way_files_are_changed_each_command_lists_its_own_and_no_others(parallel: Steps) -> None:
    """All at the same time, each in a directory of its own, beside a command that only waits."""
    steps = parallel()
    for way in CHANGES:
        for name in ("old", "full/x", "full/y/z", "two/a"):
            (steps.workspace / way / name).parent.mkdir(parents=True, exist_ok=True)
            (steps.workspace / way / name).write_text("text\n")
        os.link(steps.workspace / way / "two/a", steps.workspace / way / "two/b")
    before = {way: look(str(steps.workspace / way)) for way in CHANGES}
    idle = steps.start("c", WAIT)
    await until(lambda: any(file.stat().st_size for file in steps.state.glob("looks/*.trace")))
    found = await asyncio.gather(*(steps.step(way, f"cd '{way}'; {CHANGES[way]}") for way in CHANGES))
    await steps.step("g", '{"path": "go", "content": ""}', "write_file")
    other = await idle
    assert (listed(other), other.shared, other.warnings) == (set(), [], [])
    for way, returned in zip(CHANGES, found, strict=True):
        assert (returned.shared, returned.warnings) == ([], []), way
        changed = before[way].difference(look(str(steps.workspace / way)))
        paths = {f"{way}/{path}" for each in changed for path in each}
        assert listed(returned) == {path for path in paths if not any(one.startswith(f"{path}/") for one in paths)}


async def test_what_somebody_else_makes_while_a_command_runs_is_not_its_file_and_is_said(parallel: Steps) -> None:
    steps = parallel()
    (steps.workspace / "old").write_text("old")
    running = steps.start("a", f"echo > begun; {WAIT}; echo > end")
    await steps.sees("begun")
    (steps.workspace / "by_hand").write_text("x")
    (steps.workspace / "old").write_text("new")
    (steps.workspace / "go").touch()
    returned = await running
    assert (listed(returned), returned.shared) == ({"begun", "end"}, [])
    assert returned.warnings == ["changed while it ran, and not by it: 'by_hand', 'go', 'old'"]


async def test_files_of_file_tools_are_neither_the_commands_nor_a_strangers(parallel: Steps) -> None:
    steps = parallel()
    (steps.workspace / "gone").write_text("x")
    running = steps.start("a", f"echo > begun; {WAIT}")
    await steps.sees("begun")
    await steps.step("w", '{"path": "new/dir/file", "content": "x"}', "write_file")
    await steps.step("d", '{"path": "gone"}', "delete_file")
    await steps.step("g", '{"path": "go", "content": ""}', "write_file")
    returned = await running
    assert (listed(returned), returned.warnings) == ({"begun"}, [])


async def test_files_of_steps_in_other_worker_processes_are_not_called_strangers(parallel: Steps) -> None:
    """A second watcher knows of the first what another process would: their state directory."""
    steps, others = parallel(), parallel()
    (steps.workspace / "gone").write_text("x")
    running = steps.start("a", f"echo > begun; {WAIT}")
    await steps.sees("begun")
    still = others.start("still", f"echo > under_way; {WAIT}; until [ -e end ]; do sleep 0.02; done")
    await others.sees("under_way")
    await others.step("done", "mkdir d; echo > d/theirs; rm gone")
    await others.step("w", '{"path": "new/dir/file", "content": "x"}', "write_file")
    (steps.workspace / "by_hand").write_text("x")
    await others.step("g", '{"path": "go", "content": ""}', "write_file")
    returned = await running
    assert (listed(returned), returned.shared) == ({"begun"}, [])
    assert returned.warnings == ["changed while it ran, and not by it: 'by_hand'"]
    await others.step("e", '{"path": "end", "content": ""}', "write_file")
    assert listed(await still) == {"under_way"}
    assert [*steps.state.glob("looks/*")] == []


async def test_beside_what_another_worker_process_cannot_trace_nothing_is_called_a_strangers(parallel: Steps) -> None:
    steps, others = parallel(), parallel(trace=False)
    untraced = others.start("u", f"echo > own; {WAIT}")
    await others.sees("own")
    running = steps.start("a", f"echo > begun; {WAIT}")
    await steps.sees("begun")
    (steps.workspace / "perhaps").write_text("x")
    returned = await steps.step("b", "echo > known")
    assert (listed(returned), returned.warnings) == ({"known"}, [])
    await steps.step("g", '{"path": "go", "content": ""}', "write_file")
    assert (await running).warnings == []
    await untraced


async def test_what_a_step_left_that_lost_its_worker_is_no_strangers(parallel: Steps) -> None:
    steps, file = parallel(), b"(\0fleft\0"
    running = steps.start("a", f"echo > begun; {WAIT}")
    await steps.sees("begun")
    (steps.state / "looks/dead.trace").write_bytes(file)
    (steps.state / "looks/dead.call").write_bytes(os.fsencode(steps.workspace))
    for name in ("left", "by_hand", "go"):
        (steps.workspace / name).write_text("x")
    assert (await running).warnings == ["changed while it ran, and not by it: 'by_hand', 'go'"]


async def test_two_commands_that_write_one_file_in_turn_both_list_it(parallel: Steps) -> None:
    steps = parallel()
    first = steps.start("a", f"echo a >> both; {WAIT}; echo a >> both")
    await steps.sees("both")
    second = await steps.step("b", "echo b >> both")
    await steps.step("g", '{"path": "go", "content": ""}', "write_file")
    assert (listed(await first), listed(second), second.shared) == ({"both"}, {"both"}, [])


async def test_without_a_trace_a_file_is_one_of_the_steps_that_ran_when_it_changed(parallel: Steps) -> None:
    steps = parallel(trace=False)
    slow = steps.start("slow", f"echo > early; {WAIT}; echo > late")
    await steps.sees("early")
    await asyncio.sleep(0.05)  # past the slack that clocks are given
    quick = await steps.step("quick", "echo > both")
    await asyncio.sleep(0.05)
    await steps.step("g", '{"path": "go", "content": "x"}', "write_file")
    returned = await slow
    assert (listed(quick), quick.shared, quick.shared_with) == ({"both"}, ["both"], ["slow"])
    assert (listed(returned), returned.shared) == ({"early", "both", "late"}, ["both"])
    assert returned.shared_with == ["quick"]
    assert steps.changes("slow")["both"].others == ["quick"]


async def test_beside_a_tool_that_cannot_be_traced_what_the_command_names_is_the_commands(parallel: Steps) -> None:
    steps = parallel()

    @tool
    async def writer(path: str) -> None:
        """Write files in the worker's own process.

        Args:
            path: Where.
        """
        Path(path, "own").write_text("x")
        await until(lambda: Path(path, "go").exists())

    attempts = steps.attempts.but(step="w")
    call = attempts.call({"path": str(steps.workspace)}).model_copy(update={"step_id": "w"})
    running = asyncio.ensure_future(attempts.run(writer, call))
    await steps.sees("own")
    returned = await steps.step("a", "echo > theirs; echo > go")
    other = await running
    assert (listed(returned), returned.shared, returned.warnings) == ({"theirs", "go"}, [], [])
    assert (listed(other), other.shared) == ({"own"}, [])


async def test_a_file_whose_whole_path_is_too_long_for_the_kernel_is_still_its_commands(parallel: Steps) -> None:
    steps = parallel()
    running = steps.start("a", f"echo > begun; {WAIT}")
    await steps.sees("begun")
    code = "import os\nfor _ in range(25): os.mkdir('d' * 200); os.chdir('d' * 200)\nopen('leaf', 'w')"
    returned = await steps.step("deep", json.dumps({"code": code}), "run_python")
    await steps.step("g", '{"path": "go", "content": ""}', "write_file")
    other = await running
    assert any(path.endswith("/leaf") for path in listed(returned))
    assert returned.warnings == []
    assert (listed(other), other.warnings) == ({"begun"}, [])


async def test_a_trace_that_is_incomplete_takes_no_file_from_its_step(parallel: Steps) -> None:
    """io_uring can change files that no call names; so can a program for another processor. Sandboxes refuse both."""
    steps = parallel(level="none")
    ring = "import ctypes; ctypes.CDLL(None).syscall(425, 0, 0)"
    running = steps.start("a", f"python3 -c '{ring}'; echo > begun; {WAIT}")
    await steps.sees("begun")
    (steps.workspace / "perhaps").write_text("x")
    second = await steps.step("b", "echo > known")
    await steps.step("g", '{"path": "go", "content": ""}', "write_file")
    returned = await running
    assert listed(second) == {"known"}
    assert "perhaps" in listed(returned)
    assert "known" not in listed(returned)


async def test_a_command_inside_a_traced_one_is_not_traced_itself_and_runs_as_ever(
    parallel: Steps, tmp_path: Path
) -> None:
    """The kernel allows one listener: the inner filter is refused, and the outer trace covers the inner command."""
    steps = parallel(level="none")
    order = {"command": ["/bin/sh", "-c", "echo > inner"], "trace": str(tmp_path / "trace")}
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from plansurvive.activities.sandbox.process import Order, tried
print(tried(Order(**{order!r}, cwd=os.getcwd(), disks=[os.getcwd()]), 60).returncode)
"""
    (tmp_path / "program.py").write_text(program)
    returned = await steps.step("a", f"{sys.executable} {tmp_path}/program.py")
    assert returned.value["stdout"] == "0\n"
    assert "inner" in returned.wrote
    assert (tmp_path / "trace").read_bytes() == b""


async def test_a_retry_is_told_apart_by_what_all_attempts_did(parallel: Steps) -> None:
    steps = parallel()
    await steps.attempts.but(step="a").error("run_command", command="echo > first; exit 1")
    (steps.workspace / "between").write_text("x")
    returned = await steps.step("a", "echo > second", again=True)
    assert (listed(returned), returned.shared) == ({"first", "second"}, [])
    assert returned.warnings == ["changed while it ran, and not by it: 'between'"]


async def test_a_cancelled_command_is_named_for_what_it_left(parallel: Steps) -> None:
    steps = parallel()
    running = steps.start("a", f"echo > left; {WAIT}")
    beside = steps.start("b", WAIT)
    await steps.sees("left")
    running.cancel()
    await asyncio.wait([running])
    await steps.step("g", '{"path": "go", "content": ""}', "write_file")
    assert listed(await beside) == set()
    assert set(steps.changes("a")) == {"left"}


@pytest.mark.parametrize("level", LEVELS)
async def test_a_reading_command_is_not_held_up_and_a_writing_one_sees_its_own_errors(
    parallel: Steps, level: Level
) -> None:
    """The filter lets every call go on as it is: the same codes, the same output."""
    steps = parallel(level=level)
    command = "cat missing 2>/dev/null; echo $?; mkdir a; mkdir a 2>/dev/null; echo $?; rmdir a/b 2>/dev/null; echo $?"
    assert (await steps.step("a", command)).value["stdout"] == "1\n1\n1\n"


@pytest.mark.slow
async def test_a_command_goes_on_when_its_trace_cannot_be_written(tmp_path: Path) -> None:
    """A disk that hangs, here a full pipe: the launcher lets the call pass after two seconds, and all that follow."""
    if os.geteuid() != 0:
        pytest.skip("without a sandbox only the commands of a root worker are traced")
    trace = tmp_path / "trace"
    os.mkfifo(trace)
    reader = os.open(trace, os.O_RDONLY | os.O_NONBLOCK)
    size = fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4_096)
    command = f"for n in $(seq {size // 40}); do : > $n.{'x' * 100}; done; echo done"
    place = str(tmp_path)
    order = Order(["/bin/sh", "-c", command], {"PATH": os.defpath}, place, disks=[place], trace=str(trace))
    ended = await asyncio.to_thread(tried, order, 60)
    os.close(reader)
    assert (ended.returncode, ended.stdout) == (0, b"done\n")
