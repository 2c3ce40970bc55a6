"""Commands: what they see, what they give back, and that nothing of them lives on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.run import tool_activity
from plansurvive.activities.provenance.watcher import Watcher
from plansurvive.activities.sandbox.process import environment
from plansurvive.activities.tools.shell import run_command
from plansurvive.plans.text.traces import HEAD, folded
from tests.activities.attempts import Attempts
from tests.activities.processes import alive, until
from tests.nightly import sampled

ESCAPES = {
    "background": "sleep 300 & echo $! >> pids",
    "new session": "setsid sh -c 'echo $$ >> pids; exec sleep 300' &",
    "double fork": "(setsid sh -c '(sleep 300 & echo $! >> pids) &' &)",
    "nohup": "nohup sleep 300 >/dev/null 2>&1 & echo $! >> pids",
    "deaf": "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ >> pids; while :; do sleep 1; done' &",
}
"""Ways to outlive one's parent; each writes the process id down."""
WRITTEN = "until [ -s pids ]; do sleep 0.02; done; "


async def test_output_and_exit_code_come_back(attempts: Attempts) -> None:
    value = await attempts.value("run_command", command="echo out; echo err >&2; pwd")
    assert value == {"stdout": f"out\n{attempts.workspace}\n", "stderr": "err\n", "exitCode": 0}


@pytest.mark.parametrize("code", [193, 194])
async def test_no_exit_code_of_a_command_is_taken_for_a_limit(attempts: Attempts, code: int) -> None:
    assert await attempts.code("run_command", command=f"exit {code}") == "COMMAND_FAILED"


async def test_another_exit_code_fails_the_step_unless_allowed(attempts: Attempts) -> None:
    error = await attempts.error("run_command", command="echo details >&2; exit 3")
    assert (error.type, error.non_retryable, error.message) == ("COMMAND_FAILED", False, "exit code 3: details")
    value = await attempts.value("run_command", command="echo x; exit 3", allowFailure=True)
    assert value == {"stdout": "x\n", "stderr": "", "exitCode": 3}


async def test_the_failure_of_python_code_begins_with_what_was_raised(attempts: Attempts) -> None:
    deep = "def f(n):\n    if not n:\n        raise ValueError('bad value')\n    f(n - 1)\n    return n\n"
    for depth in (1, 30):  # of the second, the traceback's first line is not shown
        error = await attempts.error("run_python", code=f"{deep}f({depth})")
        assert error.message.splitlines()[:2] == ["exit code 1: ValueError: bad value", HEAD]
        assert folded(error.message) == "exit code 1: ValueError: bad value"


async def test_a_failure_that_shows_only_the_end_says_where_the_rest_is(attempts: Attempts) -> None:
    error = await attempts.error("run_command", command="seq 1 30; exit 3")
    rows = error.message.splitlines()
    assert rows[0] == "exit code 3: 11"
    assert rows[-2:] == ["30", "(only its end; all of it: plan logs p s)"]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "code", "final"),
    [
        ("no-such-program", "COMMAND_NOT_FOUND", True),
        ("touch plain; ./plain", "NO_PERMISSION", True),
        ("kill -9 $$", "COMMAND_FAILED", False),
        ("false", "COMMAND_FAILED", False),
        ("if", "COMMAND_FAILED", False),
    ],
)
async def test_failures_are_told_apart(attempts: Attempts, command: str, code: str, final: bool) -> None:
    error = await attempts.error("run_command", command=command)
    assert (error.type, error.non_retryable) == (code, final)
    assert (await attempts.value("run_command", command=command, allowFailure=True))["exitCode"] > 0


async def test_a_signal_shows_as_the_shell_shows_it(attempts: Attempts) -> None:
    assert (await attempts.value("run_command", command="kill -TERM $$", allowFailure=True))["exitCode"] == 143


@pytest.mark.parametrize("command", ["", "  \n", "echo \0", "x" * (128 * 1024), "\ud800"])
async def test_what_is_no_command_is_refused(attempts: Attempts, command: str) -> None:
    error = await attempts.error("run_command", command=command)
    assert (error.type, error.non_retryable) == ("COMMAND_INVALID", True)
    if len(command) < 10:
        assert await attempts.code("run_python", code=command) == "COMMAND_INVALID"


async def test_a_long_command_runs(attempts: Attempts) -> None:
    long = "x" * (128 * 1024 - 20)
    assert (await attempts.value("run_command", command=f"echo {long} | wc -c"))["stdout"].strip() == str(len(long) + 1)


async def test_a_command_runs_in_a_directory_of_the_workspace(attempts: Attempts) -> None:
    (attempts.workspace / "d").mkdir()
    value = await attempts.value("run_command", command="pwd", cwd="d")
    assert value["stdout"] == f"{attempts.workspace / 'd'}\n"
    assert await attempts.code("run_command", command="pwd", cwd="..") == "PATH_OUTSIDE"
    assert await attempts.code("run_command", command="pwd", cwd="gone") == "NOT_FOUND"


def test_the_environment_is_an_allow_list() -> None:
    base = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "TZ": "UTC",
        "OPENAI_API_KEY": "canary",
        "LD_PRELOAD": "x",
        "HOME": "/home/someone",
    }
    assert environment(base, "/w", {"MORE": "1"}) == {
        "PATH": "/bin", "LANG": "C.UTF-8", "LC_ALL": "C", "TZ": "UTC", "HOME": "/w", "TERM": "dumb", "MORE": "1",
    }  # fmt: skip


async def test_a_command_sees_its_own_variables_and_none_of_the_worker(attempts: Attempts) -> None:
    os.environ["PLANS_TEST_CANARY"] = "canary"
    try:
        value = await attempts.value("run_command", command="env; cat; ulimit -c; ls /proc/self/fd", env={"A_1": "x y"})
    finally:
        del os.environ["PLANS_TEST_CANARY"]
    assert "A_1=x y\n" in value["stdout"]
    assert f"HOME={attempts.workspace}\n" in value["stdout"]
    assert "canary" not in value["stdout"]
    assert value["stdout"].endswith("0\n0\n1\n2\n3\n")  # no core files; `ls` itself opens the third descriptor
    assert await attempts.code("run_command", command="env", env={"A=B": "x"}) == "INVALID_ARGS"
    assert await attempts.code("run_command", command="env", env={"A": 5}) == "INVALID_ARGS"


async def test_a_command_that_takes_too_long_is_dead_with_its_tree(attempts: Attempts) -> None:
    command = f"{ESCAPES['background']}; {ESCAPES['deaf']} {WRITTEN} echo waiting; sleep 300"
    error = await attempts.error("run_command", command=command, timeout=0.5)
    assert (error.type, error.non_retryable) == ("COMMAND_TIMEOUT", False)
    assert alive(attempts.workspace) == []


@pytest.mark.parametrize("way", ESCAPES)
async def test_nothing_outlives_its_command(attempts: Attempts, way: str) -> None:
    value = await attempts.value("run_command", command=f"{ESCAPES[way]}\n{WRITTEN} echo done")
    assert value["stdout"] == "done\n"
    assert (attempts.workspace / "pids").read_text()
    assert alive(attempts.workspace) == []


@pytest.mark.parametrize("way", sampled(ESCAPES, 1))
async def test_nothing_outlives_a_cancel(attempts: Attempts, way: str) -> None:
    environment = attempts.environment()
    call = attempts.call({"command": f"{ESCAPES[way]}\n{WRITTEN} echo ready > ready; sleep 300"})
    attempt = asyncio.ensure_future(
        environment.run(tool_activity(run_command, attempts.values, attempts.effects), call)
    )
    await until(lambda: (attempts.workspace / "ready").exists())
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert alive(attempts.workspace) == []


async def test_a_command_that_is_cancelled_again_and_again_ends_as_after_one(
    attempts: Attempts, tmp_path: Path
) -> None:
    """As the SDK cancels: for each heartbeat that the server refuses."""
    site, environment = replace(attempts.site, watcher=Watcher(tmp_path / "state")), attempts.environment()
    last_words = "trap 'sleep 0.5; echo bye > bye; exit' TERM"
    call = attempts.call({"command": f"{ESCAPES['deaf']}\n{WRITTEN} {last_words}; echo > ready; sleep 300 & wait"})
    activity = tool_activity(run_command, attempts.values, attempts.effects, site)
    attempt = asyncio.ensure_future(environment.run(activity, call))
    await until(lambda: (attempts.workspace / "ready").exists())
    environment.cancel()
    while not attempt.done():
        attempt.cancel("Activity cancelled")
        await asyncio.wait([attempt], timeout=0.01)
    failure = attempt.exception()
    assert isinstance(failure, ApplicationError)
    assert failure.type == "CANCELLED"
    assert set(failure.details[0]["wrote"]) == {"bye", "pids", "ready"}
    assert alive(attempts.workspace) == []


async def test_a_cancelled_command_may_clean_up(attempts: Attempts) -> None:
    environment = attempts.environment()
    call = attempts.call({"command": "trap 'echo bye > bye; exit' TERM; echo ready > ready; sleep 300 & wait"})
    attempt = asyncio.ensure_future(
        environment.run(tool_activity(run_command, attempts.values, attempts.effects), call)
    )
    await until(lambda: (attempts.workspace / "ready").exists())
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    assert (attempts.workspace / "bye").exists()


@pytest.mark.slow
@pytest.mark.sampled
async def test_nothing_outlives_a_killed_worker(attempts: Attempts) -> None:
    everything = "\n".join(ESCAPES.values())
    command = (
        f"{everything}\nuntil [ $(wc -l < pids) -ge {len(ESCAPES)} ]; do sleep 0.02; done; echo > ready; sleep 300"
    )
    program = f"""
        import asyncio
        from pathlib import Path
        from plansurvive.activities.workspace.effect_log import Effects
        from plansurvive.runtime.storage import LocalDirectory
        from plansurvive.runtime.value_store import ValueStore
        from tests.activities.attempts import Attempts

        attempts = Attempts(
            Path({str(attempts.workspace)!r}), ValueStore(LocalDirectory("unused")), Effects.at(Path("unused"))
        )
        asyncio.run(attempts.run("run_command", command={command!r}))
    """
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(program), cwd=Path(__file__).parents[3]
    )
    await until(lambda: (attempts.workspace / "ready").exists())
    assert len(alive(attempts.workspace)) == len(ESCAPES)
    worker.send_signal(signal.SIGKILL)
    await worker.wait()
    await until(lambda: alive(attempts.workspace) == [])


async def test_a_launcher_that_is_killed_fails_the_step_instead_of_hanging_it(attempts: Attempts) -> None:
    error = await attempts.error("run_command", command="kill -9 $PPID; sleep 3")
    assert (error.type, error.non_retryable) == ("COMMAND_FAILED", False)
    assert "killed" in error.message


@pytest.mark.slow
@pytest.mark.sampled
async def test_many_commands_leave_no_descriptors_open(attempts: Attempts) -> None:
    await attempts.run("run_command", command="true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        await asyncio.gather(*(attempts.run("run_command", command="true") for _ in range(4)))
        await attempts.code("run_command", command="sleep 300", timeout=0.05)
    await until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)


async def test_the_last_line_is_the_progress(attempts: Attempts) -> None:
    command = "echo first; echo '50 %'; until [ -e go ]; do sleep 0.02; done"
    attempt = asyncio.ensure_future(attempts.run("run_command", command=command))
    await until(lambda: bool(attempts.beats) and attempts.beats[-1]["line"] == "50 %")
    (attempts.workspace / "go").touch()
    await attempt


async def test_python_runs_in_a_process_of_its_own(attempts: Attempts) -> None:
    code = "import os, sys\nprint(os.getcwd(), 'ä', flush=True)\nprint('warn', file=sys.stderr)"
    value = await attempts.value("run_python", code=code)
    assert value == {"stdout": f"{attempts.workspace} ä\n", "stderr": "warn\n", "exitCode": 0}


async def test_python_that_fails_shows_its_error(attempts: Attempts) -> None:
    error = await attempts.error("run_python", code="raise ValueError('odd')")
    assert (error.type, error.non_retryable) == ("COMMAND_FAILED", False)
    assert "ValueError: odd" in error.message
    assert await attempts.code("run_python", code="raise SystemExit(127)") == "COMMAND_FAILED"
    value = await attempts.value("run_python", code="raise SystemExit(4)", allowFailure=True)
    assert value["exitCode"] == 4
    assert await attempts.code("run_python", code="while True: pass", timeout=0.3) == "COMMAND_TIMEOUT"


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_commands_that_begin_together_leave_the_worker_time_for_heartbeats_in_between(attempts: Attempts) -> None:
    """Starting a process blocks the event loop: never more than one between two looks of the other tasks."""
    task = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    running = asyncio.gather(*(attempts.run("run_command", command="sleep 0.3") for _ in range(20)))
    seen, most = set(task.read_text().split()), 0
    while not running.done():
        await asyncio.sleep(0)
        now = set(task.read_text().split())
        most, seen = max(most, len(now - seen)), seen | now
    assert [each.value["exitCode"] for each in await running] == [0] * 20
    assert 1 <= most <= 2
