"""The command `logs`: what the commands of a plan write, attempt by attempt.

Output is shown line by line, each with its step, made safe for a terminal; of a line that rewrites itself with carriage
returns, the last state. `--stdout`, `--stderr` and `--json` change nothing in it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.color import ColorSystem
from rich.style import Style

from plansurvive.activities.outputs.stored_output import Number
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, Id, OfStep
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.cli.terminal.signals import INTERRUPTED
from plansurvive.client.ids import plan_id
from plansurvive.features.outputs.attempts import Shown
from plansurvive.features.outputs.feed import Began, Ended, Event, LeftOut, Wrote, feed, raw
from plansurvive.plans.activity_io import STDERR, STDOUT, WORKER_LOST
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.safe_text import json_text, line, quoted, safe
from plansurvive.plans.views.models.live import numbered
from plansurvive.runtime.connect import storage
from plansurvive.runtime.value_store import ValueStore

MAX_LINE = 64 * 1024
"""Bytes of a line after which it is shown in parts."""
_NAMES = {STDOUT: "stdout", STDERR: "stderr"}
_MARKS = {STDOUT: "|", STDERR: "!"}
"""Between the step and its line."""
_RETURN = "\r"


def logs(
    plan: Id,
    step: OfStep = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Until the plan ends, as it is written.")] = False,
    out: Annotated[bool, typer.Option("--stdout", help="Only what STEP's last attempt wrote there, exactly.")] = False,
    err: Annotated[bool, typer.Option("--stderr", help="The same for standard error.")] = False,
    attempt: Annotated[
        int | None, typer.Option("--attempt", metavar="N", min=1, help="With --stdout or --stderr: of that attempt.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what commands write, attempt by attempt. Of long loops without STEP: what has not completed."""
    if out or err:
        _check_raw(step, both=out and err, other=follow or as_json)
        session.look(plan, "logs", lambda here: _write_raw(here, plan, step or "", STDOUT if out else STDERR, attempt))
        return
    if attempt is not None:
        raise typer.BadParameter("--attempt needs --stdout or --stderr")
    shown = _Json(plan_id(plan)) if as_json else _Text()

    async def show(here: Connected) -> None:
        store = ValueStore(storage(here.settings))
        fold = step is None and not as_json
        async for event in feed(here.client, store, plan, step or "", follow=follow, fold=fold, say=output.say):
            if isinstance(event, LeftOut):
                shown.has_shown = True
                rest = f"{line(event.loop)}: what {event.steps:,} completed steps wrote"
                output.show(f"{rest} is not shown; see: plan logs {plan_id(plan)} {quoted(event.loop)}")
            else:
                shown.show(event)

    try:
        session.look(plan, "logs", show)
    except KeyboardInterrupt:
        again = " ".join(filter(None, ("plan logs", plan_id(plan), step, "-f")))
        output.say(f"\nThe plan continues in the background.\n  follow its output again  {again}")
        raise typer.Exit(INTERRUPTED) from None
    if not shown.has_shown:
        output.say(_nothing(plan_id(plan), step, shown.attempts))


def _check_raw(step: str | None, *, both: bool, other: bool) -> None:
    if step is None:
        raise typer.BadParameter("--stdout and --stderr need a STEP")
    if both or other:
        raise typer.BadParameter("--stdout and --stderr exclude each other, --follow and --json")


async def _write_raw(here: Connected, plan: str, step: str, stream: Any, attempt: int | None) -> None:
    """Write the bytes as they are; to a terminal, as safe text."""
    async for data in raw(here.client, ValueStore(storage(here.settings)), plan, step, stream, attempt):
        if sys.stdout.isatty():
            sys.stdout.write(safe(data.decode("utf-8", "replace")))
        else:
            await asyncio.to_thread(sys.stdout.buffer.write, data)
    sys.stdout.flush()


def _nothing(plan: str, step: str | None, attempts: int) -> str:
    if step is None:
        return "No step of this plan has written output."
    if not attempts:
        return f"Step '{line(step)}' has not started, or wrote nothing; see: plan show {plan}"
    return f"Step '{line(step)}' wrote no output; its result: plan show {plan}"


class _Printer(ABC):
    """Prints events. One write for all the lines of an event: output may have millions."""

    def __init__(self) -> None:
        self.has_shown = False
        """Whether there was output, or some that could not be read."""
        self.attempts = 0
        self._lines = _Splitter()

    def show(self, event: Event) -> None:
        """Print an event."""
        rows = [self.row(event, stream, text) for stream, text in self._lines.of(event)]
        self.has_shown |= bool(rows) or (isinstance(event, Ended) and bool(event.problem))
        if isinstance(event, Began):
            self.attempts += 1
            rows.append(self.beginning(event))
        elif isinstance(event, Ended):
            rows.append(self.end(event))
        if rows:
            sys.stdout.write("\n".join(rows) + "\n")
            sys.stdout.flush()

    @abstractmethod
    def row(self, event: Event, stream: Number, text: str) -> str:
        """A line of output."""

    @abstractmethod
    def beginning(self, event: Began) -> str:
        """That an attempt begins."""

    @abstractmethod
    def end(self, event: Ended) -> str:
        """That an attempt has ended."""


class _Json(_Printer):
    """As lines of JSON."""

    def __init__(self, plan: str) -> None:
        super().__init__()
        self._plan = plan

    def row(self, event: Event, stream: Number, text: str) -> str:
        return self._row(event, stream=_NAMES[stream], text=text)

    def beginning(self, event: Began) -> str:
        before = event.before.attempt if event.before else None
        after = {"after": before.code, "waited": before.delay} if before else {}
        return self._row(event, event="began", of=event.of.step.of, **after)

    def end(self, event: Ended) -> str:
        attempt, cut = event.of.attempt, _is_cut(event.of)
        fields = {"code": attempt.code, "error": attempt.error, "delay": attempt.delay, "problem": event.problem}
        found = {name: value for name, value in {**fields, "cut": cut}.items() if value}
        return self._row(event, event="ended", duration=attempt.duration, **found)

    def _row(self, at: Event, **more: Any) -> str:
        attempt = at.of.attempt
        began = attempt.began and attempt.began.isoformat()
        head = {"planId": self._plan, "stepId": at.of.label, "attempt": attempt.number, "began": began}
        return json_text(json.dumps(head | more, ensure_ascii=False, separators=(",", ":")))


class _Text(_Printer):
    """As text, on a terminal in colour."""

    def __init__(self) -> None:
        super().__init__()
        self._has_colour = sys.stdout.isatty() and output.out().color_system is not None

    def row(self, event: Event, stream: Number, text: str) -> str:
        label = self._styled(f"{line(event.of.label)} {_MARKS[stream]}", "dim")
        return f"{label} {self._styled(safe(text.rpartition(_RETURN)[2]), 'red' if stream == STDERR else '')}"

    def beginning(self, event: Began) -> str:
        return self._remark(f"{line(event.of.label)}: {_beginning(event)}", "bold")

    def end(self, event: Ended) -> str:
        style = "bold" if event.of.attempt.code is None else "bold red"
        return self._remark(f"{line(event.of.label)}: {_end(event)}", style)

    def _remark(self, text: str, style: str) -> str:
        """What is not output may be broken at spaces."""
        console = output.out()
        rows = output.hanging(text, console) if console.is_terminal else [text]
        return "\n".join(self._styled(row, style) for row in rows)

    def _styled(self, text: str, style: str) -> str:
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if self._has_colour else text


class _Splitter:
    """Cuts what attempts write into lines."""

    def __init__(self) -> None:
        self._begun: dict[tuple[object, Any], bytes] = {}

    def of(self, event: Event) -> Iterator[tuple[Any, str]]:
        """The lines that an event completes, each with its stream."""
        if isinstance(event, Wrote):
            place = (event.of.key, event.stream)
            *whole, rest = (self._begun.pop(place, b"") + event.data).split(b"\n")
            while len(rest) > MAX_LINE:
                whole.append(rest[:MAX_LINE])
                rest = rest[MAX_LINE:]
            if rest:
                self._begun[place] = rest
            yield from ((event.stream, _text(each)) for each in whole)
        elif isinstance(event, Ended):
            for stream in _NAMES:
                if (event.of.key, stream) in self._begun:
                    yield stream, _text(self._begun.pop((event.of.key, stream)))


def _text(data: bytes) -> str:
    return data.removesuffix(b"\r").decode("utf-8", "replace")


def _beginning(event: Began) -> str:
    """`attempt 2 of 3, after exit code 1, waited 1 s`."""
    attempt = event.of.attempt
    found = numbered(attempt.number, event.of.of)
    if attempt.run:
        found += f" in plan {line(attempt.run)}"
    if event.before is not None:
        before = event.before.attempt
        found += f", after {line(_reason(event.before))}"
        found += f", waited {before.delay:.3g} s" if before.delay is not None else ""
    return found


def _reason(shown: Shown) -> str:
    """The beginning of an error: `exit code 1` of `exit code 1: its last lines`."""
    attempt = shown.attempt
    return "its worker was lost" if attempt.code == WORKER_LOST else attempt.error.partition(":")[0][:200]


def _end(event: Ended) -> str:
    attempt = event.of.attempt
    if event.problem:
        return f"its output cannot be read here: {line(event.problem)}"
    rest = "; output beyond this was not kept" if _is_cut(event.of) else ""
    if event.of.runs:
        return f"ended without a record{rest}"
    if attempt.code is None:
        return f"completed in {seconds(attempt.duration / 1_000)}{rest}"
    wait = f"; next attempt in {attempt.delay:.3g} s" if attempt.delay is not None else ""
    wait = "; not retried" if event.of.is_given_up else wait
    has_shown = attempt.logs is not None and attempt.logs.stdout + attempt.logs.stderr > 0
    return f"{line(attempt.code)} {line(_reason(event.of) if has_shown else attempt.error)}{rest}{wait}"


def _is_cut(shown: Shown) -> bool:
    return shown.attempt.logs is not None and shown.attempt.logs.cut
