"""Settings of the server that might matter, one by one: a wide plan with each, side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks import graphs
from benchmarks.bench import Bench
from benchmarks.sample import Sample, middle, ratio
from benchmarks.stand import Stand
from benchmarks.tables import Table

BUFFERED = "history.maximumBufferedEventsBatch"


class Setting(NamedTuple):
    """One setting, and otherwise those of `plan up`."""

    flags: Sequence[str] = ()
    gogc: str = ""
    in_flight: int | None = None


SETTINGS = {
    "as `plan up` starts it": Setting(),
    "GOGC=400 instead of 100": Setting(gogc="400"),
    f"{BUFFERED}: 1,000 instead of 100": Setting(flags=["--dynamic-config-value", f"{BUFFERED}=1000"]),
    "32 steps in flight instead of 64": Setting(in_flight=32),
    "100 steps in flight": Setting(in_flight=100),
    "100 steps in flight, 1,000 buffered events": Setting(["--dynamic-config-value", f"{BUFFERED}=1000"], "", 100),
}


async def measure(bench: Bench) -> list[Table]:
    """Run the same plan with each setting, alternating."""
    count = 100 if bench.quick else 1_000
    table = Table(
        title="Settings of the server",
        columns=["setting", "wall s", "ratio", "worker CPU ms/step", "server CPU ms/step", "ratio ", "events/step"],
        note=f"A fan-out of {count:,} steps. `ratio` is against the settings of `plan up`.",
    )
    found: dict[str, list[Sample]] = {name: [] for name in SETTINGS}
    async with AsyncExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="plans-bench-", ignore_cleanup_errors=True))
        )
        stands = {name: await stack.enter_async_context(_stand(folder / str(number), setting))
                  for number, (name, setting) in enumerate(SETTINGS.items())}  # fmt: skip
        for turn in range(bench.repeats + 1):
            for name in SETTINGS if turn % 2 else reversed(SETTINGS):
                bench.say(name)
                sample = await stands[name].run("plan", [graphs.fan_out(count)])
                if turn:
                    found[name].append(sample)
    usual = next(iter(found.values()))
    for name, samples in found.items():
        table.add(
            name,
            f"{middle(samples, lambda one: one.seconds):.2f}",
            f"{ratio(samples, usual, lambda one: one.seconds):.2f}",
            f"{1_000 * middle(samples, lambda one: one.worker_cpu / one.steps):.2f}",
            f"{1_000 * middle(samples, lambda one: one.server_cpu / one.steps):.2f}",
            f"{ratio(samples, usual, lambda one: one.server_cpu):.2f}",
            f"{middle(samples, lambda one: one.events / one.steps):.2f}",
        )
    return [table]


def _stand(folder: Path, setting: Setting) -> Stand:
    stand = Stand(folder, durable=False)
    stand.server_flags, stand.max_parallel = setting.flags, setting.in_flight
    stand.server_variables = {"GOGC": setting.gogc} if setting.gogc else {}
    return stand
