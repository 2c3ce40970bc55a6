"""Other libraries with durable state on the same graphs: wall time, CPU, waiting, and what each makes of a kill -9.

    python -m benchmarks --only others --repeats 3 --write docs/reference/measurements.md

Each is installed once, at a pinned version, into the cache directory (`benchmarks.comparison.installing`); one that
cannot be had gets a row that says why. There is no bar: these tools have other purposes.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import graphs
from benchmarks.bench import Bench
from benchmarks.comparison.contender import Contender, Cost
from benchmarks.comparison.contenders import BY_ITSELF, ENTRIES, WHEN_ASKED, Entry
from benchmarks.comparison.kills import SECONDS, Killed, killed, steps_with
from benchmarks.comparison.waits import Waited, waited
from benchmarks.graphs import Steps
from benchmarks.speed import workloads
from benchmarks.tables import Table

LARGE = 10_000
SINGLE = 50
"""Runs of one step."""
ONE_STEP = "one step"
STEPS = 100
"""Of a run that is killed."""
KILLED_AT = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Share of the steps that have ended then."""
WAITING = 200
"""Runs that wait."""
ANSWERS = 10
"""Of those, runs that get their answer after the kill."""


@dataclass(frozen=True)
class Shape:
    """What is run for one column: graphs at the same time, or one after the other."""

    graphs: list[Steps]
    in_turn: bool = False

    @property
    def steps(self) -> int:
        """In all of them."""
        return sum(map(len, self.graphs))


async def measure(bench: Bench, entries: Sequence[Entry] = ENTRIES) -> list[Table]:
    """Run every graph on each, kill each in the middle of some runs, and let runs wait on each."""
    shapes = _shapes(bench.quick)
    note = (
        "Steps that do nothing, durable state on. One step: the time of a run, the mean of"
        f" {len(shapes[ONE_STEP].graphs)} that follow one another. The largest graph runs once, the others after one"
        " of a tenth."
    )
    columns = ["engine", "state", *shapes]
    wall = Table(title="Alternatives: ms of wall time per step", columns=columns, note=note)
    cpu = Table(
        title="Alternatives: ms of CPU per step",
        columns=columns,
        note="Of all processes that take part: the one with the steps, its server or database, and the client.",
    )
    kills = Table(
        title="Alternatives: after a kill",
        columns=["engine", "state", "killed", "runs", "in flight", "begun again", "finished, done again", "lost",
                 "continues", "after s", "runs that ended whole"],
        note=f"{STEPS} steps of 10 ms to 1 s in layers of 20, killed with SIGKILL once in each run when 10 to 90 % have"
        " ended, and started again as before. Numbers of steps of all runs together, by the ledger the steps write.",
    )  # fmt: skip
    waits = Table(
        title="Alternatives: runs that wait",
        columns=["engine", "state", "waits by", "kB a run, process", "kB a run, server", "CPU % without runs",
                 "CPU % while they wait", "goes on after a kill", "after s", "ended"],
        note=f"{_waiting(bench)[0]} runs that wait for a person, then have one step. Memory: the growth of the process"
        " with the steps, and of its server or database. CPU: of one core, all processes. Then all of them were killed"
        f" with SIGKILL and started again, and {_waiting(bench)[1]} of the runs got their answer.",
    )  # fmt: skip
    for entry in entries:
        bench.say(entry.name)
        if entry.speed:
            async with _or_say_why(entry, wall, cpu):
                await _add_speed(wall, cpu, entry, shapes, bench)
        if entry.kills:
            async with _or_say_why(entry, kills):
                await _add_kills(kills, entry, bench)
        if entry.waits:
            async with _or_say_why(entry, waits):
                await _add_waits(waits, entry, bench)
    return [wall, cpu, kills, waits]


def _shapes(quick: bool) -> dict[str, Shape]:
    """What is run, by name."""
    found = {name: Shape(graph) for name, graph in workloads(quick).items() if "references" not in name}
    large = LARGE // 50 if quick else LARGE
    single = Shape([graphs.chain(1)] * (SINGLE // 10 if quick else SINGLE), in_turn=True)
    return {ONE_STEP: single, **found, f"layered {large:,}": Shape([graphs.layered(large)])}


def _waiting(bench: Bench) -> tuple[int, int]:
    """Runs that wait, and those of them that get an answer."""
    return (WAITING // 10, ANSWERS // 2) if bench.quick else (WAITING, ANSWERS)


@asynccontextmanager
async def _or_say_why(entry: Entry, *tables: Table) -> AsyncIterator[None]:
    """Add a row to the tables if that fails which would add one."""
    try:
        yield
    except (RuntimeError, TimeoutError, OSError) as error:
        for table in tables:
            table.add(entry.name, _short(error), *("-" for _ in table.columns[2:]))


@asynccontextmanager
async def _started(entry: Entry) -> AsyncIterator[Contender]:
    with tempfile.TemporaryDirectory(prefix="plans-bench-", ignore_cleanup_errors=True) as folder:
        contender = await entry.make(Path(folder))
        try:
            await contender.start()
            yield contender
        finally:
            await contender.stop()


async def _add_speed(wall: Table, cpu: Table, entry: Entry, shapes: dict[str, Shape], bench: Bench) -> None:
    async with _started(entry) as contender:
        for number, shape in enumerate(_shapes(quick=True).values()):
            await contender.run(f"warm-{number}", shape.graphs, in_turn=shape.in_turn)
        found = {name: await _costs(contender, name, shape, bench) for name, shape in shapes.items()}
        for table, of in ((wall, lambda cost: cost.wall), (cpu, lambda cost: cost.cpu)):
            cells = []
            for name, shape in shapes.items():
                costs, error = found[name]
                figure = f"{1_000 * median(map(of, costs)) / shape.steps:.2f}" if costs else ""
                cells.append(" ".join(filter(None, (figure, error))))
            table.add(contender.engine, contender.state, *cells)


async def _costs(contender: Contender, name: str, shape: Shape, bench: Bench) -> tuple[list[Cost], str]:
    """Of each repetition, and why there are not all of them."""
    turns = 1 if len(shape.graphs[0]) >= LARGE else bench.repeats
    costs: list[Cost] = []
    try:
        for turn in range(turns):
            costs.append(await contender.run(f"{name.replace(' ', '-')}-{turn}", shape.graphs, in_turn=shape.in_turn))
            bench.say(f"  {name}: {costs[-1].wall:.2f} s, CPU {costs[-1].cpu:.2f} s")
    except (RuntimeError, TimeoutError, OSError) as error:
        bench.say(f"  {name}: {error!r}")
        await contender.kill(everything=True)
        await contender.restart(everything=True)
        return costs, f"({len(costs)} of {turns}: {_short(error)})"
    return costs, ""


async def _add_kills(table: Table, entry: Entry, bench: Bench) -> None:
    async with _started(entry) as contender:
        for everything in (False, True) if contender.has_server else (False,):
            found: list[Killed] = []
            for number, share in enumerate(KILLED_AT[2:3] if bench.quick else KILLED_AT):
                name = f"killed-{number}-{everything}".lower()
                steps = steps_with(f"{name}.txt", STEPS)
                # Once it is known that somebody has to do something, there is no need to wait for it again.
                wait = SECONDS if not found or found[-1].by_itself else 1.0
                found.append(await killed(contender, name, steps, int(share * STEPS), everything=everything, wait=wait))
                bench.say(f"  {found[-1]}")
            what = "process and server" if everything else "process"
            table.add(contender.engine, contender.state, what, *_cells(found))


async def _add_waits(table: Table, entry: Entry, bench: Bench) -> None:
    assert entry.waits
    runs, answers = _waiting(bench)
    seconds, settle = (2.0, 1.0) if bench.quick else (15.0, entry.waits.settle)
    async with _started(entry) as contender:
        found = await waited(contender, runs, answers, seconds=seconds, settle=settle)
        bench.say(f"  {found}")
        table.add(contender.engine, contender.state, *of_waits(entry, contender, found))


def of_waits(entry: Entry, contender: Contender, found: Waited) -> list[str]:
    """The cells of a row, from how it waits on."""
    assert entry.waits
    return [
        entry.waits.by,
        f"{found.memory / 1_000:.0f}",
        f"{found.server_memory / 1_000:.0f}" if contender.has_server else "no server",
        f"{100 * found.idle:.1f}",
        f"{100 * found.busy:.1f}",
        entry.waits.goes_on if found.ended else "no",
        f"{found.seconds:.1f}" if found.ended == found.answered else "-",
        f"{found.ended} of {found.answered}" + (f" ({_short(found.error)})" if found.error else ""),
    ]


def _cells(found: list[Killed]) -> list[str]:
    judged = [one.judged for one in found]
    seconds = [one.seconds for one in found if not math.isinf(one.seconds)]
    whole = [one for one in found if not one.error and one.completed == one.steps and not one.judged.lost]
    errors = sorted({one.error for one in found if one.error})
    return [
        str(len(found)),
        str(sum(one.in_flight for one in judged)),
        str(sum(one.begun_again for one in judged)),
        str(sum(one.done_again for one in judged)),
        _lost(found),
        _continues(found),
        f"{median(seconds):.1f}" if seconds else "-",
        f"{len(whole)} of {len(found)}" + (f" ({errors[0][:120]})" if errors else ""),
    ]


def _lost(found: list[Killed]) -> str:
    """Steps that never ended; not those of runs that say themselves that they are not done."""
    left = sum(one.judged.lost for one in found if one.error)
    return f"{sum(one.judged.lost for one in found if not one.error)}" + (
        f" ({left} left for a person)" if left else ""
    )


def _continues(found: list[Killed]) -> str:
    if all(one.error for one in found):
        return "ends, a person decides"
    return BY_ITSELF if all(one.by_itself for one in found) else WHEN_ASKED


def _short(error: Exception | str) -> str:
    """For a cell."""
    text = " ".join((str(error) or "took too long").split()).replace("|", "/")
    return text if len(text) <= 120 else f"{text[:117]}..."
