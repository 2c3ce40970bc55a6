"""What the command line prints: results on standard output, everything else on standard error.

Texts of plans and tools are escaped and never parsed as markup: step output cannot redraw the screen (FAULTS, T18).
An error is one block that starts with a stable code; with `--json` it is an object with the same content.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.text import Text

from plansurvive.client.cli.terminal.console import SafeConsole
from plansurvive.client.cli.terminal.environment import default, environ
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import json_text, line, safe
from plansurvive.runtime.settings import said

if TYPE_CHECKING:
    from plansurvive.plans.model import Problem

INDENT = " " * 4
RUN = "; run: "
"""In an error, before the command that mends it, which ends the row."""
PIPE_WIDTH = 240
"""Width in columns of a table written to a file or a pipe."""


def out() -> SafeConsole:
    """Console for results (standard output). Lines are not wrapped in a file or a pipe."""
    return _console(sys.stdout.isatty(), stderr=False)


def err() -> SafeConsole:
    """Console for remarks and errors (standard error)."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, *, stderr: bool) -> SafeConsole:
    width = None if terminal else PIPE_WIDTH
    return SafeConsole(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=not terminal, width=width)


def say(sentence: str) -> None:
    """Print a remark about progress, dimmed, on standard error."""
    err().print(Text(safe(sentence), style="dim"))


def remark(text: Text) -> None:
    """Print a safe text with colours on standard error."""
    err().print(text, soft_wrap=True)


def show(text: str) -> None:
    """Print a text on standard output, escaped and never wrapped."""
    out().print(Text(safe(text)), soft_wrap=True)


def show_rows(text: str) -> None:
    """Print a text as `show`; on a terminal, rows of prose that are too long are broken at spaces, and hang.

    A value stays one row, which the terminal breaks, and so does a command, below what is said of it: what is copied
    from there has no further line breaks.
    What a call says continues after a mark, as where it is decided about.
    """
    console = out()
    if console.is_terminal:
        text = "\n".join(each for row in safe(text).split("\n") for each in hanging(row, console))
    show(text)


def hanging(row: str, console: SafeConsole) -> list[str]:
    """A safe row as a console is wide: see `show_rows`."""
    begins = len(row) - len(row.lstrip())
    is_exact = row.startswith(("Value: ", "Next: ", "Inputs: "), begins)
    if is_exact or cell_len(row) <= console.width or begins + 20 > console.width:
        return [row]
    if "│ " in row:
        from plansurvive.plans.views.steps.call_text import NAME_WIDTH, folded_rows  # as in `fitted`

        indent = min(begins, max(0, row.index("│ ") - NAME_WIDTH - 1))
        return [row[:indent] + each for each in folded_rows([row[indent:]], console.width - indent, cell_len)]
    said, _, command = row.partition(": plan ")
    own = f"{' ' * (begins + len(INDENT))}plan {command}"
    if command and cell_len(own) <= console.width:
        return [*hanging(f"{said}:", console), own]
    deeper = begins + 2
    first, *rest = Text(row[begins:]).wrap(console, console.width - deeper)
    return [row[:begins] + first.plain.rstrip(), *(" " * deeper + each.plain.rstrip() for each in rest)]


def page(text: Text | str) -> None:
    """Print a safe text on standard output: on a terminal that it does not fit, in the pager."""
    console, text = out(), Text(text) if isinstance(text, str) else text
    rows = sum(max(1, -(-cell_len(row) // console.width)) for row in text.plain.split("\n"))
    if console.is_terminal and sys.stdin.isatty() and rows >= console.height:
        with console.pager(styles=_pager_shows_colours()):
            console.print(text, soft_wrap=True)
    else:
        console.print(text, soft_wrap=True)


def fitted(rows: Sequence[str], margin: int = 0) -> list[str]:
    """Rows of a call as a terminal is wide, less a margin: longer ones continue on the next, marked. Else unchanged."""
    from plansurvive.plans.views.steps.call_text import folded_rows  # imports all views, which `plan list` does without

    console = out() if sys.stdout.isatty() else err()
    return folded_rows(rows, console.width - margin, cell_len) if console.is_terminal else list(rows)


def wrapped(head: str, sentence: str) -> list[str]:
    """A safe sentence behind its heading; on a terminal too narrow for both, in rows of its own, broken at spaces."""
    console = out() if sys.stdout.isatty() else err()
    if not console.is_terminal or cell_len(head) + 1 + cell_len(sentence) <= console.width:
        return [f"{head} {sentence}"]
    rows = Text(sentence).wrap(console, max(20, console.width - len(INDENT)))
    return [head, *(f"{INDENT}{row.plain.rstrip()}" for row in rows)]


def broken(row: Text, console: SafeConsole, margin: int = 0) -> list[Text]:
    """A safe row as a terminal is wide: broken at spaces, and what continues it `margin` columns in. To be printed so.

    A command behind RUN is a row of its own, which the terminal breaks: what is copied has no further line breaks.
    """
    if not console.is_terminal or row.cell_len <= console.width:
        return [row]
    margin = margin if console.width >= 2 * margin else 0
    prose, run, command = row.plain.partition(RUN)
    parts = row[margin : len(prose) + len(run.rstrip())].wrap(console, console.width - margin)
    rows = [Text.assemble(" " * margin if number else row[:margin], part) for number, part in enumerate(parts)]
    return [*rows, *([Text(f"  {command}")] if run else [])]


def either(head: str, commands: str) -> list[str]:
    """Two commands, as `plans.views.models.card.commands` joins them; too wide for a terminal, each in its own row."""
    from plansurvive.plans.views.models.card import OR  # as above

    console = out() if sys.stdout.isatty() else err()
    first, either_or, second = commands.partition(OR)
    if not either_or or not console.is_terminal or cell_len(head + commands) <= console.width:
        return [head + commands]
    other = f"{OR.lstrip()}{second}"
    indent = cell_len(head) if cell_len(head + other) <= console.width else len(INDENT)
    return [head + first, " " * indent + other]


def _pager_shows_colours() -> bool:
    """Whether the pager is less, which is told to pass them on, unless the user has told it something else."""
    given = environ()
    chosen = given.get("MANPAGER") or given.get("PAGER") or "less"
    return "less" in chosen and shutil.which("less") is not None and "R" in default("LESS", "-R").upper()


def show_json(data: Any, *, on_one_line: bool = False) -> None:
    """Print a value as JSON. Unusual characters become escapes, which JSON parsers turn back: exact and visible."""
    indent, separators = (None, (",", ":")) if on_one_line else (2, None)
    text = json.dumps(data, ensure_ascii=False, indent=indent, separators=separators, default=str)
    sys.stdout.write(json_text(text) + "\n")
    sys.stdout.flush()


def show_error(error: PlanError, *, as_json: bool, where: str = "", lines: Sequence[int | None] = ()) -> None:
    """Print an error as one block or as JSON. `where`: the file with the problems; `lines`: the line of each one."""
    if as_json:
        found: dict[str, Any] = {"code": error.code, "message": error.message}
        if isinstance(error, InvalidPlan):
            found["problems"] = problem_rows(error.problems, lines)
        show_json({"error": found})
    elif isinstance(error, InvalidPlan):
        show_problems(error.problems, where, lines, "" if error.head == InvalidPlan.head else error.head)
    else:
        code, head = said(error).split(" ", 1)
        head, *rest = safe(head).splitlines() or [""]
        rows = [Text.assemble((f"{code} ", "bold red"), head), *(Text(f"  {each}") for each in rest)]
        remark(Text("\n").join(each for row in rows for each in broken(row, err())))


def problem_rows(problems: Sequence[Problem], lines: Sequence[int | None] = ()) -> list[dict[str, Any]]:
    """Problems as JSON objects, with line numbers where known."""
    return [
        problem.model_dump(mode="json", exclude_none=True) | ({"line": number} if number else {})
        for problem, number in zip_longest(problems, lines)
    ]


def show_problems(
    problems: Sequence[Problem], where: str = "", lines: Sequence[int | None] = (), head: str = ""
) -> None:
    """Print every problem of a plan: code and place on one line, the message on the next.

    `head`: what precedes their number, instead of the file or plan that has them.
    """
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    console, counts = err(), [number_of(errors, "problem")] if errors else []
    counts += [number_of(warnings, "warning")] if warnings else []
    named = f" {shlex.quote(where)}" if where and Path(where).is_file() else _FILE
    text = Text.assemble((f"{head or line(where) or 'The plan'}{'' if head else ':'} {', '.join(counts)}", "bold"))
    for problem, number in zip_longest(problems, lines):
        style = "red" if problem.severity == "error" else "yellow"
        place = [f"line {number}"] if number else []
        place += [f"step '{line(problem.step_id)}'"] if problem.step_id else []
        place += [line(problem.field)] if problem.field else []
        text.append("\n  ").append(problem.code, style)
        text.append(f"  {', '.join(place)}" if place else "", "dim")
        rows = [f"    {line(problem.message.replace(_FILE, named))}"]
        rows = hanging(rows[0], console) if console.is_terminal else rows
        text.append("".join(f"\n{row}" for row in rows))
    console.print(text)


_FILE = " FILE"
"""What commands in the messages of problems name, where the plan file is not known."""


def compact(value: Any) -> str:
    """Format a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
