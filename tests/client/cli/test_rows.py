"""Rows of a plan on a narrow terminal: prose is broken at spaces, what is exact stays whole."""

from __future__ import annotations

import pytest
from rich.text import Text

from plansurvive.client.cli.terminal.console import SafeConsole
from plansurvive.client.cli.terminal.output import broken, hanging

NARROW = SafeConsole(width=40)
PROSE = "the path does not exist in the workspace; list_directory lists what is there"


def test_prose_is_broken_at_spaces_and_hangs() -> None:
    rows = hanging(f"      Notes: {PROSE}", NARROW)
    assert len(rows) > 1
    assert " ".join(row.strip() for row in rows) == f"Notes: {PROSE}"
    assert all(len(row) <= NARROW.width for row in rows)
    assert [len(row) - len(row.lstrip()) for row in rows] == [6, *[8] * (len(rows) - 1)]


@pytest.mark.parametrize("begins", ["content      │ ", "             │ ", "first part of 'a' │ "])
def test_what_a_call_says_continues_after_a_mark(begins: str) -> None:
    rows = hanging(f"      {begins}{PROSE}", NARROW)
    assert len(rows) > 1
    assert all(len(row) <= NARROW.width for row in rows)
    assert all(row.startswith(" " * 19 + "┆ ") for row in rows[1:])
    assert rows[0].removeprefix(f"      {begins}") + "".join(row[21:] for row in rows[1:]) == PROSE


@pytest.mark.parametrize("row", ["Value: ", "Next: plan resume x --from ", "Inputs: name = "])
def test_what_is_copied_stays_whole(row: str) -> None:
    whole = "      " + row + PROSE
    assert hanging(whole, NARROW) == [whole]


def test_a_command_stays_whole_below_what_is_said_of_it() -> None:
    command = "plan approve x 'each[a].clear'"
    rows = hanging(f"  each[a].clear: it awaits approval, since an hour: {command}", NARROW)
    assert rows == ["  each[a].clear: it awaits approval,", "    since an hour:", f"      {command}"]
    prose = hanging(f"  it was done: plan why x STEP {PROSE}", NARROW)
    assert len(prose) > 1
    assert all(len(row) <= NARROW.width for row in prose)


def test_a_row_that_fits_and_one_too_deep_stay_as_they_are() -> None:
    assert hanging("  [x] short", NARROW) == ["  [x] short"]
    assert hanging(" " * 30 + PROSE, NARROW) == [" " * 30 + PROSE]


def test_the_command_that_mends_an_error_is_one_row() -> None:
    line = "pipx install --force 'plansurvive[acp,gcs,mcp,notify,review,web]'"
    terminal = SafeConsole(width=40, force_terminal=True)

    def rows(text: str, console: SafeConsole = terminal, margin: int = 0) -> list[str]:
        return [each.plain.rstrip() for each in broken(Text(text), console, margin)]

    error = f"APP_MISSING: `plan web` is not installed; run: {line}"
    assert rows(error) == ["APP_MISSING: `plan web` is not", "installed; run:", f"  {line}"]
    assert rows(error, margin=13) == ["APP_MISSING: `plan web` is not", f"{' ' * 13}installed; run:", f"  {line}"]
    assert rows(error, NARROW) == [error], "a pipe"
    assert rows("CODE: short; run: it") == ["CODE: short; run: it"]
    assert " ".join(rows(f"BAD_PLAN: {PROSE}")) == f"BAD_PLAN: {PROSE}"
    assert all(len(row) <= terminal.width for row in rows(f"BAD_PLAN: {PROSE}", margin=30))
