"""What `plan logs` shows, in order: attempts begin, write and end. What is known now, or until the plan has ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from temporalio.client import Client

from plansurvive.activities.outputs.stored_output import Number, Position, output
from plansurvive.client.errors import NoWorker
from plansurvive.client.live.feed import LONG_LOOP
from plansurvive.client.rpc import has_ended
from plansurvive.features.outputs.attempts import Attempts, Known, Shown
from plansurvive.plans.activity_io import STDERR, STDOUT
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.flow.ids import around, lineage
from plansurvive.plans.text.lists import number_of
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.value_store import ValueStore

POLL_SECONDS = 0.5
"""Seconds between two looks at a plan that is followed."""


@dataclass(frozen=True)
class Began:
    """An attempt begins. `before`: the attempt of the same call that it repeats."""

    of: Shown
    before: Shown | None


@dataclass(frozen=True)
class Wrote:
    """An attempt has written."""

    of: Shown
    stream: Number
    data: bytes


@dataclass(frozen=True)
class Ended:
    """An attempt has ended. `problem`: why not all of its output could be read."""

    of: Shown
    problem: str = ""


Event = Began | Wrote | Ended


@dataclass(frozen=True)
class LeftOut:
    """Steps that completed inside a long loop, and whose output is not shown."""

    loop: str
    steps: int


@dataclass
class _State:
    shown: Shown
    position: Position = field(default_factory=lambda: {STDOUT: 0, STDERR: 0})
    has_begun: bool = False
    has_ended: bool = False


async def feed(
    client: Client,
    store: ValueStore,
    plan: str,
    step: str = "",
    *,
    follow: bool = False,
    fold: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Event | LeftOut]:
    """The attempts of a plan's steps, or of one step, with their output. `follow`: until the plan has ended.

    `fold`: without what completed inside long loops; not with `follow`, where it is shown as it is written.

    Of all steps, those are left out that neither wrote anything nor failed. While the server or the worker of a plan
    that is followed are away, `say` is called once; otherwise raises as `Attempts.known`.
    """
    attempts, states, is_away = Attempts(client, plan, step), dict[tuple[object, ...], _State](), False
    while True:
        try:
            known, is_away = await attempts.known(), False
        except NotConnected as error:
            if not follow or (isinstance(error, NoWorker) and await has_ended(client, plan)):
                raise
            if not is_away:
                say(error.message)
            is_away = True
            await asyncio.sleep(2 * POLL_SECONDS)
            continue
        left_out = _folded(known.attempts) if fold and not follow else {}
        shown = known._replace(attempts=[each for each in known.attempts if each.label not in left_out])
        async for event in _news(shown, states, store, is_one_step=bool(step)):
            yield event
        for loop, steps in Counter(left_out.values()).items():
            yield LeftOut(loop, steps)
        if known.has_ended or not follow:
            break
        await asyncio.sleep(POLL_SECONDS)
    for state in states.values():  # cancelled, or taken from a worker that does not record output
        if follow and state.has_begun and not state.has_ended:
            yield Ended(state.shown)


def _folded(attempts: Sequence[Shown]) -> dict[str, str]:
    """The steps to leave out: those that wrote something inside a long loop and completed, each with the loop."""
    last = {each.label: each for each in attempts}
    items: dict[str, set[str]] = {}
    for label in last:
        for loop, item in _loops(label):
            items.setdefault(loop, set()).add(item)
    found = {}
    for label, shown in last.items():
        long = [loop for loop, _ in _loops(label) if len(items[loop]) > LONG_LOOP]
        logs = shown.attempt.logs
        if long and not shown.runs and shown.attempt.code is None and logs and logs.stdout + logs.stderr:
            found[label] = long[-1]  # the outermost
    return found


def _loops(label: str) -> list[tuple[str, str]]:
    """The loops that a step is in, innermost first, each with the item of it."""
    return [(next(around(name)), name) for name in lineage(label) if name.endswith("]")]


async def _news(
    known: Known, states: dict[tuple[object, ...], _State], store: ValueStore, *, is_one_step: bool
) -> AsyncIterator[Event]:
    for number, shown in enumerate(known.attempts):
        state = states.setdefault(_key(shown, states), _State(shown))
        state.shown, logs = shown, shown.attempt.logs
        if state.has_ended or not (is_one_step or shown.attempt.code or (logs and logs.stdout + logs.stderr)):
            continue
        if not state.has_begun:
            state.has_begun = True
            yield Began(shown, _before(shown, known.attempts[:number]))
        problem = ""
        try:
            async for piece in output(shown.attempt, store, state.position):
                yield Wrote(shown, piece.stream, piece.data)
        except ToolError as error:
            problem = error.message
        except (OSError, ValueError) as error:  # a storage that is away, or an index of another version
            problem = str(error)
        if problem or not shown.runs:
            state.has_ended = True
            yield Ended(shown, problem)


def _key(shown: Shown, states: dict[tuple[object, ...], _State]) -> tuple[object, ...]:
    """The attempt's own key, or that under which it was seen running: one without output is recorded without a time."""
    if shown.attempt.began is None and shown.key not in states:
        open_ = [key for key, state in states.items() if state.shown.runs and state.shown.label == shown.label]
        return open_[-1] if open_ else shown.key
    return shown.key


def _before(shown: Shown, earlier: Sequence[Shown]) -> Shown | None:
    """The attempt of the same call before this one."""
    call = (shown.label, shown.attempt.run, shown.attempt.call)
    same = [each for each in earlier if (each.label, each.attempt.run, each.attempt.call) == call]
    return same[-1] if same else None


async def raw(
    client: Client, store: ValueStore, plan: str, step: str, stream: Number, attempt: int | None = None
) -> AsyncIterator[bytes]:
    """The exact bytes of one stream: of the attempt with that number in the order of time, from 1; None: the last one.

    Raises as `Attempts.known`, ToolError if the storage does not have them, and PlanError NO_SUCH_ATTEMPT.
    """
    found = (await Attempts(client, plan, step).known()).attempts
    number = len(found) if attempt is None else attempt
    if not 1 <= number <= len(found):
        raise PlanError(f"step '{step}' has {number_of(len(found), 'recorded attempt')}", "NO_SUCH_ATTEMPT")
    position: Position = {STDOUT: 0, STDERR: 0}
    async for piece in output(found[number - 1].attempt, store, position):
        if piece.stream == stream:
            yield piece.data
