"""`plan logs`: what commands wrote, every attempt of it, afterwards and while they run."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from plansurvive.activities.outputs.stored_output import Number
from plansurvive.features.outputs.feed import raw
from plansurvive.plans.activity_io import STDERR, STDOUT
from plansurvive.runtime.connect import connect, storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore
from tests.client.cli.command import line_with, plan, running, told_to_stop, written
from tests.kit.waiting import until

Environ = dict[str, str]
NOISE = "import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes({}))"


def command(name: str, text: str, **more: Any) -> dict[str, Any]:
    retry = {"attempts": 3, "delay": 0.05}
    return {
        "id": name,
        "tool": "run_command",
        "args": {"command": text},
        "requiresApproval": False,
        "retry": retry,
        **more,
    }


async def ran(environ: Environ, directory: Path, *steps: dict[str, Any]) -> str:
    """The id of a plan that has ended."""
    file = written(directory / "plan.json", {"title": "A test", "steps": list(steps)})
    return str((await plan(environ, "run", file, "--yes", "--json")).json["planId"])


async def started(environ: Environ, directory: Path, *steps: dict[str, Any]) -> str:
    file = written(directory / "plan.json", {"title": "A test", "steps": list(steps)})
    return str((await plan(environ, "start", file, "--yes", "--json")).json["planId"])


@pytest.mark.slow
@pytest.mark.in_turn
async def test_every_attempt_is_shown_with_its_output_its_end_and_why_the_next_one_came(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    flaky = 'echo try >> tries; n=$(wc -l < tries); echo "out $n"; echo "err $n" >&2; [ $n -ge 3 ]'
    name = await ran(environ, tmp_path, command("flaky", flaky), command("silent", "true", dependsOn=["flaky"]))
    ended = await plan(environ, "logs", name)
    assert ended.code == 0
    rows = ended.out.splitlines()
    assert sorted(rows[1:3]) == ["flaky ! err 1", "flaky | out 1"]
    assert [row for row in rows if row.startswith("flaky:")] == [
        "flaky: attempt 1 of 3",
        "flaky: COMMAND_FAILED exit code 1; next attempt in 0.05 s",
        "flaky: attempt 2 of 3, after exit code 1, waited 0.05 s",
        "flaky: COMMAND_FAILED exit code 1; next attempt in 0.1 s",
        "flaky: attempt 3 of 3, after exit code 1, waited 0.1 s",
        rows[-1],
    ]
    assert rows[-1].startswith("flaky: completed in ")
    assert "silent" not in ended.out


async def test_of_a_long_loop_the_items_that_completed_are_counted(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    loop = {"items": list(range(12)), "tolerate": 1}
    say = command("say", "echo item {{item}}; [ {{item}} != 7 ]", forEach=loop, retry={"attempts": 1})
    name = await ran(environ, tmp_path, say)
    rows = (await plan(environ, "logs", name)).out.splitlines()
    assert rows[1] == "say[7] | item 7"
    assert rows[3:] == [f"say: what 11 completed steps wrote is not shown; see: plan logs {name} say"]
    assert len((await plan(environ, "logs", name, "say")).out.splitlines()) == 12 * 3


async def test_a_step_that_fails_for_good_keeps_all_it_wrote(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    name = await ran(environ, tmp_path, command("fails", "seq 1 50000; exit 3", retry={"attempts": 1}))
    rows = (await plan(environ, "logs", name, "fails")).out.splitlines()
    assert rows[0] == "fails: attempt 1 of 1"
    assert rows[1:-1] == [f"fails | {number}" for number in range(1, 50_001)]
    assert rows[-1].startswith("fails: COMMAND_FAILED exit code 3")


async def test_what_a_command_wrote_before_its_time_was_over_or_before_the_limit_is_kept(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    slow = command("slow", "echo before; sleep 60", retry={"attempts": 1})
    slow["args"]["timeout"] = 1.5
    # An attempt may be over before the command began, on a busy machine: then there is another.
    again = {"attempts": 20, "delay": 0.05, "factor": 1.0}
    late = command("late", "[ ! -e said ] || exit 0; echo late; touch said; sleep 60", retry=again, timeout=0.3)
    name = await ran(environ, tmp_path, slow, late, command("killed", "echo last; kill -9 $$", retry={"attempts": 1}))
    out = (await plan(environ, "logs", name)).out
    assert "slow | before\n" in out
    assert "slow: COMMAND_TIMEOUT" in out
    assert "late | late\n" in out
    assert "late: STEP_TIMEOUT" in out
    assert "killed | last\n" in out


async def test_what_a_cancelled_command_wrote_is_kept(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    text = "trap 'echo cleaning; exit 1' TERM; echo working; touch ready; sleep 60 & wait"
    name = await started(environ, tmp_path, command("build", text))
    await until(lambda: (workspace / "ready").exists(), "the command runs")
    assert (await plan(environ, "cancel", name)).code == 0
    await plan(environ, "watch", name)
    rows = (await plan(environ, "logs", name)).out.splitlines()
    assert rows[1:-1] == ["build | working", "build | cleaning"]
    assert rows[-1] == "build: CANCELLED cancelled while it ran"
    shown = (await plan(environ, "show", name, "--json")).json["steps"][0]
    assert (shown["status"], shown["result"]["code"]) == ("failed", "CANCELLED")


async def bytes_of(settings: Settings, plan: str, step: str, stream: Number, attempt: int | None = None) -> bytes:
    """What `--stdout` or `--stderr` writes."""
    client, store = await connect(settings), ValueStore(storage(settings))
    return b"".join([data async for data in raw(client, store, plan, step, stream, attempt)])


@pytest.mark.slow
async def test_raw_output_is_exact(environ: Environ, worker: Worker, tmp_path: Path, settings: Settings) -> None:
    text = f"python3 -c '{NOISE.format(400_000)}'; printf 'a\\377b' >&2"
    name = await ran(environ, tmp_path, command("noise", text), command("short", "printf 'no newline'"))
    async with running(environ, "logs", name, "noise", "--stdout") as process:
        out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert out == random.Random(7).randbytes(400_000)
    assert await bytes_of(settings, name, "noise", STDERR) == b"a\xffb"
    assert await bytes_of(settings, name, "short", STDOUT) == b"no newline"
    assert await bytes_of(settings, name, "short", STDERR) == b""


async def test_one_attempt_can_be_chosen(environ: Environ, worker: Worker, tmp_path: Path, settings: Settings) -> None:
    flaky = command("flaky", "echo try >> tries; wc -l < tries; [ $(wc -l < tries) -ge 2 ]")
    name = await ran(environ, tmp_path, flaky)
    assert (await bytes_of(settings, name, "flaky", STDOUT, 1)).strip() == b"1"
    assert (await bytes_of(settings, name, "flaky", STDOUT)).strip() == b"2"
    refused = await plan(environ, "logs", name, "flaky", "--stdout", "--attempt", "3")
    assert (refused.code, "NO_SUCH_ATTEMPT" in refused.err) == (2, True)
    for wrong in (["--stdout"], ["flaky", "--stdout", "--stderr"], ["flaky", "--stdout", "-f"], ["--attempt", "1"]):
        assert (await plan(environ, "logs", name, *wrong)).code == 2


async def test_json_has_a_line_for_everything(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    name = await ran(
        environ, tmp_path, command("a", "echo one; printf 'two\\r\\n\\033[31mred'; exit 1", retry={"attempts": 1})
    )
    rows = [json.loads(row) for row in (await plan(environ, "logs", name, "--json")).out.splitlines()]
    assert [row.get("event") or (row["stream"], row["text"]) for row in rows] == [
        "began", ("stdout", "one"), ("stdout", "two"), ("stdout", "\x1b[31mred"), "ended"
    ]  # fmt: skip
    assert (rows[0]["of"], rows[-1]["code"], rows[-1]["attempt"]) == (1, "COMMAND_FAILED", 1)
    assert {row["stepId"] for row in rows} == {"a"}


async def test_what_a_command_writes_cannot_redraw_the_screen(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    name = await ran(environ, tmp_path, command("a", "printf '\\033[2Jx\\n10%%\\r100%%\\n\\342\\200\\256evil\\n'"))
    assert (await plan(environ, "logs", name)).out.splitlines()[1:-1] == [
        "a | \\u001b[2Jx",
        "a | 100%",
        "a | \\u202eevil",
    ]


async def test_steps_without_output_say_so(environ: Environ, worker: Worker, tmp_path: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("text")
    read = {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}}
    name = await ran(environ, tmp_path, read)
    ended = await plan(environ, "logs", name)
    assert (ended.code, ended.out, ended.err) == (0, "", "No step of this plan has written output.\n")
    one = await plan(environ, "logs", name, "read")
    assert one.out.splitlines()[0] == "read: attempt 1 of 3"
    assert "wrote no output" in one.err
    unknown = await plan(environ, "logs", name, "nothing", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (2, "UNKNOWN_STEP")


@pytest.mark.slow
async def test_output_is_followed_while_it_is_written_and_to_the_end_of_the_plan(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    waits = "echo first; echo problem >&2; until [ -e go ]; do sleep 0.05; done; seq 1 3000; echo last"
    name = await started(environ, tmp_path, command("build", waits))
    async with running(environ, "logs", name, "-f") as process:
        assert await line_with(process, "build") == "build: attempt 1 of 3\n"
        assert {await line_with(process, "build"), await line_with(process, "build")} == {
            "build | first\n", "build ! problem\n"
        }  # fmt: skip
        live = await plan(environ, "logs", name, "build")  # without -f: as far as it is
        assert "build | first\n" in live.out
        assert "last" not in live.out
        (workspace / "go").touch()
        out, _ = await process.communicate()
    rows = out.decode().splitlines()
    assert rows[:-1] == [f"build | {number}" for number in range(1, 3_001)] + ["build | last"]
    assert rows[-1].startswith("build: completed in ")
    assert process.returncode == 0


@pytest.mark.slow
async def test_ctrl_c_says_how_to_follow_again(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    name = await started(environ, tmp_path, command("build", "echo first; until [ -e go ]; do sleep 0.05; done"))
    async with running(environ, "logs", name, "build", "-f") as process:
        await line_with(process, "build | first")
        assert f"plan logs {name} build -f" in await told_to_stop(process, signal.SIGINT)
        assert process.returncode == 130
    (workspace / "go").touch()
    await plan(environ, "watch", name)


@pytest.mark.slow
async def test_a_resumed_plan_shows_the_output_of_the_steps_it_keeps(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    once = command("again", "echo try >> tries; echo attempt $(wc -l < tries); [ -e go ]", retry={"attempts": 1})
    name = await ran(environ, tmp_path, command("kept", "seq 1 100000"), {**once, "dependsOn": ["kept"]})
    (workspace / "go").touch()
    resumed = (await plan(environ, "resume", name, "--json")).json["planId"]
    await plan(environ, "watch", resumed)
    out = (await plan(environ, "logs", resumed)).out
    assert "kept | 100000\n" in out
    assert f"again: attempt 1 of 1 in plan {name}\nagain | attempt 1\n" in out
    assert "again | attempt 2\n" in out


async def test_output_lost_with_its_storage_is_said_and_hides_no_other(
    environ: Environ, worker: Worker, tmp_path: Path, state_dir: Path
) -> None:
    name = await ran(
        environ, tmp_path, command("long", "seq 1 100000"), command("short", "echo here", dependsOn=["long"])
    )
    for file in (state_dir / "values").glob("??/*"):
        if file.stat().st_size > 300_000:
            file.unlink()
    out = (await plan(environ, "logs", name)).out
    assert "long: its output cannot be read here: " in out
    assert "short | here\n" in out
    missing = await plan(environ, "logs", name, "long", "--stdout")
    assert (missing.code, "VALUE_MISSING" in missing.err) == (2, True)
