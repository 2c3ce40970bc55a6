"""Recorded runs of real workflows as plans, compared with the workflow written by hand for the same graph.

    git clone --depth 1 https://github.com/wfcommons/WfInstances
    python -m benchmarks.real_dags WfInstances --json real.json

Every task of an instance is a step with its real dependencies, which sleeps for its recorded run time, scaled: the
shortest possible makespan with 64 steps in flight becomes `--seconds`, or `--pace` per task if that is longer. Plan and
workflow by hand alternate. Each run keeps a ledger, which tells whether every task ran once, and after its parents.

Exit code 0; 1 if something did not run whole, or with `--strict` if a row falls short; 2 if there is nothing to run.

Scaled by the shortest makespan: below 5 ms per task every engine on two cores is measured by its throughput.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from statistics import median

from benchmarks import document
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.leaving import leave
from benchmarks.minimal import IN_FLIGHT
from benchmarks.stand import KINDS, Kind, Stand
from benchmarks.tables import Table
from benchmarks.wf_format import TaskGraph, Unreadable, read
from plansurvive.plans.model import MAX_STEPS

BAR = 1.05
"""Median makespan relative to the hand-written workflow."""
PATIENCE = 300.0
"""Seconds a run may take beyond twenty times the shortest possible."""


@dataclass(frozen=True)
class Load:
    """How run times are scaled: the shortest possible makespan in seconds, at least `pace` seconds per task."""

    seconds: float = 3.0
    pace: float = 0.005

    def scaled(self, tasks: int) -> float:
        """The shortest possible makespan of a graph of so many tasks."""
        return max(self.seconds, self.pace * tasks)


@dataclass
class Instance:
    """One file: its graph, or why it cannot run; and what its runs measured, in seconds."""

    name: str
    family: str
    graph: TaskGraph | None = None
    problem: str = ""
    least: float = 0.0
    makespans: dict[Kind, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    faults: list[str] = field(default_factory=list)
    """What the ledgers of its plans say against it."""

    @property
    def ratio(self) -> float:
        """The plan's makespan relative to the one by hand."""
        return median(self.makespans["plan"]) / median(self.makespans["minimal"])

    @property
    def to_bare(self) -> float:
        """The plan's makespan relative to the bare yardstick's."""
        return median(self.makespans["plan"]) / median(self.makespans["bare"])


def find(folder: Path, only: str = "*") -> list[Instance]:
    """The instances of a directory, by path; those that are unreadable or too large say so."""
    found = []
    for file in sorted(folder.rglob("*.json")):
        name = file.relative_to(folder).as_posix()
        if not fnmatch(name, only):
            continue
        instance = Instance(name, file.relative_to(folder).parent.as_posix().replace(".", folder.resolve().name, 1))
        try:
            instance.graph = read(file)
        except Unreadable as error:
            instance.problem = str(error)
        else:
            count = len(instance.graph.tasks)
            if count > MAX_STEPS:
                instance.problem = f"{count:,} tasks; a plan has at most {MAX_STEPS:,} steps"
        found.append(instance)
    return found


def _size(instance: Instance) -> int:
    return len(instance.graph.tasks) if instance.graph else 0


def ledger_faults(lines: Iterable[str], steps: Steps) -> list[str]:
    """What a ledger says against a run: tasks that did not run once, or began before a task they depend on ended."""
    started: dict[str, list[int]] = {step["id"]: [] for step in steps}
    ended: dict[str, list[int]] = {step["id"]: [] for step in steps}
    for number, line in enumerate(lines):
        kind, _, name = line.strip().partition(" ")
        (started if kind == "start" else ended).setdefault(name, []).append(number)
    faults = [
        f"{name} began {len(started.get(name, ()))} times and ended {len(ended.get(name, ()))} times"
        for name in started | ended
        if not len(started.get(name, ())) == len(ended.get(name, ())) == 1
    ]
    for step in steps:
        first = min(started[step["id"]], default=-1)
        early = [parent for parent in step["dependsOn"] if not 0 <= min(ended[parent], default=-1) < first]
        faults += [f"{step['id']} began before {parent} ended" for parent in early if first >= 0]
    return faults


async def measure(instances: list[Instance], bench: Bench, load: Load, *, durable: bool = False) -> None:
    """Run every instance that can run on each, alternating (A B, B A, ...), after one warm-up."""
    runnable = [instance for instance in instances if instance.graph]
    async with bench.stand(durable=durable) as stand:
        for kind in KINDS if runnable else ():
            await _run(stand, kind, Instance("", "", min(runnable, key=_size).graph), Load(0.1, 0.0))
        for turn in range(bench.repeats):
            for number, instance in enumerate(runnable):
                for kind in KINDS if (turn + number) % 2 else reversed(KINDS):
                    await _run(stand, kind, instance, load)
                told = f"{instance.name}: {instance.makespans['plan'][-1]:.2f} s, ratio {instance.ratio:.3f}"
                bench.say(f"{turn * len(runnable) + number + 1} {told} {'; '.join(instance.faults[:3])}")


async def _run(stand: Stand, kind: Kind, instance: Instance, load: Load) -> None:
    assert instance.graph is not None
    ledger = stand.workspace / f"ledger-{uuid.uuid4().hex}.txt"
    instance.least = load.scaled(len(instance.graph.tasks))
    steps = instance.graph.steps(instance.least, IN_FLIGHT, ledger=ledger.name)
    began = time.perf_counter()
    async with asyncio.timeout(PATIENCE + 20 * instance.least):
        result = await (await stand.start(kind, steps)).result()
    instance.makespans[kind].append(time.perf_counter() - began)
    if kind == "plan":
        instance.faults += ledger_faults(ledger.read_text().splitlines(), steps)
        if result["counts"] != {"total": len(steps), "completed": len(steps)}:
            instance.faults.append(f"the plan ended as {result['status']}: {result['counts']}")
    ledger.unlink()


def tables(instances: list[Instance], load: Load) -> list[Table]:
    """The table of what ran, by family, and that of what did not, if there is something."""
    ran = [instance for instance in instances if instance.makespans["plan"]]
    table = Table(
        title="Real graphs",
        columns=["family", "instances", "tasks", "depth", "by hand s", "of the shortest", "ratio, median",
                 "ratio, largest", "to bare, median", "whole"],
        note=f"WfCommons instances, scaled: the shortest possible makespan is {load.seconds:g} s, or"
        f" {1_000 * load.pace:g} ms per task if longer. Of the shortest: by hand, as a multiple of it, median. Whole:"
        " every task ran once, after its parents, by the ledger of the run."
        f" Bar: all whole, median ratio of all {BAR}.",
    )  # fmt: skip
    for family, members in groupby(ran, key=lambda instance: instance.family):
        _add(table, family, list(members))
    if ran:
        _add(table, "all", ran, bar=True)
    left = Table(title="Real graphs that did not run", columns=["file", "reason"])
    for instance in instances:
        if instance.problem:
            left.add(instance.name, instance.problem)
    return [table, left] if left.rows else [table]


def _add(table: Table, family: str, members: list[Instance], bar: bool = False) -> None:
    graphs = [member.graph for member in members if member.graph]
    tasks = [len(graph.tasks) for graph in graphs]
    whole = sum(not member.faults for member in members)
    ratios = [member.ratio for member in members]
    table.add(
        family,
        f"{len(members)}",
        f"{sum(tasks):,}" if bar else _range(tasks),
        _range([graph.depth for graph in graphs]),
        _range([median(member.makespans["minimal"]) for member in members], ".1f"),
        f"{median(median(member.makespans['minimal']) / member.least for member in members):.2f}",
        f"{median(ratios):.3f}",
        f"{max(ratios):.3f}",
        f"{median(member.to_bare for member in members):.3f}",
        f"{whole} of {len(members)}",
        reached=(whole == len(members) and median(ratios) <= BAR) if bar else None,
    )


def _range(values: list[int] | list[float], style: str = ",") -> str:
    low, high = f"{min(values):{style}}", f"{max(values):{style}}"
    return low if low == high else f"{low} to {high}"


def as_json(instances: list[Instance], found: list[Table]) -> str:
    """Everything measured, per instance, and the tables."""
    each = []
    for instance in instances:
        graph, fields = instance.graph, asdict(instance) | {"ratio": None, "tasks": None, "depth": None}
        del fields["graph"]
        if graph is not None:
            fields |= {"tasks": len(graph.tasks), "depth": graph.depth}
        if instance.makespans["plan"]:
            fields["ratio"] = round(instance.ratio, 4)
        each.append(fields)
    return json.dumps({"instances": each, "tables": [table.model_dump() for table in found]}, indent=2)


def main(arguments: list[str] | None = None, say: Callable[[str], None] | None = None) -> int:
    """Run the instances of the directory; returns the exit code."""
    flags = _parser().parse_args(arguments)
    bench = Bench(repeats=flags.repeats, quick=False, say=say or _to_stderr)
    instances = find(flags.dir, flags.only) if flags.dir.is_dir() else []
    if not instances:
        bench.say(f"no instance of WfFormat (*.json) in {flags.dir}")
        return 2
    load = Load(flags.seconds, flags.pace)
    asyncio.run(measure(instances, bench, load, durable=flags.durable))
    found = tables(instances, load)
    for table in found:
        print(f"\n{table.markdown()}\n", flush=True)
    if flags.json:
        flags.json.write_text(as_json(instances, found))
    if flags.write:
        document.write(flags.write, found[:1], flags.repeats)
    whole = all(instance.graph and not instance.problem and not instance.faults for instance in instances)
    return int(not whole or (flags.strict and any(table.shorts for table in found)))


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_dags", description="Run WfCommons instances as plans, and by hand."
    )
    parser.add_argument("dir", type=Path, metavar="DIR", help="directory with instances of WfFormat 1.5")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="only files whose path in DIR matches")
    parser.add_argument("--seconds", type=_positive, default=3.0, metavar="S", help="shortest possible makespan (3)")
    parser.add_argument(
        "--pace", type=_positive, default=0.005, metavar="S", help="the same, at least per task (0.005)"
    )
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="runs of each, of which the median (1)")
    parser.add_argument("--durable", action="store_true", help="the server's data on disk, as for users")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure as JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help="update the table in this Markdown file")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a row falls short")
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value <= 3_000:
        raise argparse.ArgumentTypeError("a number of seconds above 0, at most 3000")
    return value


if __name__ == "__main__":
    leave(main())
