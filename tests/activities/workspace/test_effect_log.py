"""The effect log: what it records, and that effects are refused when it cannot be used."""

from __future__ import annotations

import dataclasses
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from plansurvive.activities.workspace.effect_log import VERSION, Effect, EffectLog, Effects
from plansurvive.plans.errors import ToolError
from tests.activities.attempts import Attempts

WRITE = Effect("run/s", "write", "/w", "x", ".t", "old", "new", 3, {"path": "x"})


@pytest.fixture
def log(state_dir: Path) -> EffectLog:
    """A log that has been used."""
    found = EffectLog(state_dir / "effects", busy_seconds=0.1)
    found.begin(WRITE)
    return found


def test_an_effect_is_open_until_it_is_settled_or_forgotten(log: EffectLog) -> None:
    assert log.open_at("/w", "x") == [WRITE]
    assert log.open_at("/w", "y") == log.open_at("/v", "x") == []
    log.settle(WRITE, "done")
    assert log.open_at("/w", "x") == []
    assert log.find("run/s", "x") == dataclasses.replace(WRITE, state="done")
    log.forget(WRITE)
    assert log.find("run/s", "x") is None


def test_the_effects_of_one_run_lead_from_one_content_to_another(log: EffectLog) -> None:
    log.settle(WRITE, "done")
    second = dataclasses.replace(WRITE, key="run/t", before="new", after="newer")
    log.begin(second)
    assert not log.leads("run", "/w", "x", "old", "newer")
    log.settle(second, "done")
    assert log.leads("run", "/w", "x", "old", "newer")
    assert log.leads("run", "/w", "x", "new", "newer")
    assert not log.leads("run", "/w", "x", "older", "newer")
    assert not log.leads("another", "/w", "x", "old", "newer")


def test_a_log_is_for_its_owner_and_seen_by_another_process_at_once(log: EffectLog) -> None:
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert EffectLog(log.path.parent).find("run/s", "x") == WRITE


def test_effects_long_done_are_forgotten_open_ones_never(log: EffectLog) -> None:
    done = dataclasses.replace(WRITE, key="run/t", state="done")
    log.begin(done)
    log.close()
    with sqlite3.connect(log.path) as connection:
        connection.execute("UPDATE effects SET time = 0")
    assert log.find("run/t", "x") is None
    assert log.find("run/s", "x") == WRITE


def emptied(log: EffectLog) -> None:
    log.path.write_bytes(b"")


def removed(log: EffectLog) -> None:
    for path in log.path.parent.glob("log.db*"):
        path.unlink()


def corrupt(log: EffectLog) -> None:
    log.path.write_bytes(b"nothing that SQLite knows " * 400)


def truncated(log: EffectLog) -> None:
    with log.path.open("r+b") as file:
        file.truncate(5_000)


def older(log: EffectLog) -> None:
    with sqlite3.connect(log.path) as connection:
        connection.execute("PRAGMA user_version = 0")


def newer(log: EffectLog) -> None:
    with sqlite3.connect(log.path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")


def without_tables(log: EffectLog) -> None:
    with sqlite3.connect(log.path) as connection:
        connection.execute("DROP TABLE effects")


def a_directory(log: EffectLog) -> None:
    removed(log)
    log.path.mkdir()


BROKEN: list[Callable[[EffectLog], None]] = [
    emptied, removed, corrupt, truncated, older, newer, without_tables, a_directory,
]  # fmt: skip


@pytest.mark.parametrize("running", [False, True], ids=["before the start", "while it runs"])
@pytest.mark.parametrize("damage", BROKEN)
async def test_no_effect_happens_while_the_log_cannot_be_used(
    attempts: Attempts, damage: Callable[[EffectLog], None], running: bool
) -> None:
    await attempts.run("write_file", path="x", content="old")
    log = attempts.effects.log
    if not running or damage in (corrupt, truncated, emptied, older, newer, without_tables):
        log.close()
    damage(log)
    for tool, args in (
        ("write_file", {"path": "x", "content": "new"}),
        ("edit_file", {"path": "x", "oldText": "old", "newText": "new"}),
        ("create_directory", {"path": "d"}),
        ("delete_file", {"path": "x"}),
    ):
        error = await attempts.error(tool, **args)
        assert (error.type, error.non_retryable) == ("EFFECTS_UNAVAILABLE", True)
        assert str(log.path) in error.message
        assert "log.made" in error.message
    assert [path.name for path in attempts.workspace.iterdir()] == ["x"]
    assert (attempts.workspace / "x").read_text() == "old"
    assert await attempts.value("read_file", path="x") == "old"


async def test_a_log_that_is_moved_away_with_its_marker_is_made_anew(attempts: Attempts) -> None:
    await attempts.run("write_file", path="x", content="old")
    for path in list(attempts.effects.log.path.parent.glob("log.*")):
        path.rename(path.with_name(f"kept-{path.name}"))
    await attempts.run("write_file", path="x", content="new")
    assert (attempts.workspace / "x").read_text() == "new"


def test_a_log_that_another_program_holds_is_worth_another_attempt(log: EffectLog) -> None:
    holder = sqlite3.connect(log.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ToolError, match="another program has locked it") as caught:
        log.settle(WRITE, "done")
    assert (caught.value.code, caught.value.retryable) == ("EFFECTS_UNAVAILABLE", True)
    holder.execute("ROLLBACK")
    holder.close()
    log.settle(WRITE, "done")


def test_looking_whether_the_log_can_be_used_makes_none(state_dir: Path) -> None:
    EffectLog(state_dir / "effects").check()
    assert list(state_dir.iterdir()) == []


@pytest.mark.slow
def test_many_processes_log_at_once(state_dir: Path) -> None:
    program = f"""
        import sys
        from pathlib import Path
        from plansurvive.activities.workspace.effect_log import Effect, EffectLog
        log = EffectLog(Path({str(state_dir)!r}))
        for number in range(50):
            effect = Effect(f"run/{{sys.argv[1]}}-{{number}}", "write", "/w", "x", state="open")
            log.begin(effect)
            log.settle(effect, "done")
    """
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", textwrap.dedent(program)]
    running = [subprocess.Popen([*command, str(number)], cwd=root) for number in range(4)]
    assert [process.wait(180) for process in running] == [0] * 4
    assert len(Effects.at(state_dir).log._select("state = 'done'")) == 200
