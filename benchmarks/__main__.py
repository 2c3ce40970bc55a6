"""`python -m benchmarks`: runs the measurements, prints the tables, and writes them to files on request.

Exit code 0, or with `--strict` 1 if a row falls short. Every measurement starts and stops its own server and workers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from benchmarks import (
    alternatives,
    caching,
    document,
    express,
    idle_plans,
    latency,
    loops,
    outputs,
    payloads,
    policy,
    prompts,
    reads,
    replay,
    scale,
    server_settings,
    single,
    skew,
    snapshots,
    speed,
    startup,
    step_cost,
    telemetry,
    to_bare,
    tracing,
    web_page,
)
from benchmarks.bench import Bench
from benchmarks.leaving import leave
from benchmarks.tables import Table

MEASUREMENTS = {
    "speed": speed.measure,
    "to-bare": to_bare.measure,
    "express": express.measure,
    "step-cost": step_cost.measure,
    "policy": policy.measure,
    "server-settings": server_settings.measure,
    "skew": skew.measure,
    "loops": loops.measure,
    "latency": latency.measure,
    "payloads": payloads.measure,
    "outputs": outputs.measure,
    "idle-plans": idle_plans.measure,
    "replay": replay.measure,
    "startup": startup.measure,
    "prompts": prompts.measure,
    "reads": reads.measure,
    "snapshots": snapshots.measure,
    "caching": caching.measure,
    "tracing": tracing.measure,
    "telemetry": telemetry.measure,
    "single": single.measure,
    "scale": scale.measure,
    "web-page": web_page.measure,
    "others": alternatives.measure,
}


async def measured(bench: Bench, names: list[str]) -> list[Table]:
    """The tables of the measurements, in order."""
    tables: list[Table] = []
    for name in names:
        bench.say(f"-- {name}")
        for table in await MEASUREMENTS[name](bench):
            print(f"\n{table.markdown()}\n", flush=True)
            tables.append(table)
    return tables


def main() -> int:
    """Run the measurements that the flags select; returns the exit code."""
    flags = _parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # servers and workers of the measurement end as well
    bench = Bench(repeats=flags.repeats, quick=flags.quick, say=lambda line: print(line, file=sys.stderr, flush=True))
    tables = asyncio.run(measured(bench, flags.only or list(MEASUREMENTS)))
    if flags.json:
        flags.json.write_text(json.dumps([table.model_dump() for table in tables], indent=2))
    if flags.write:
        document.write(flags.write, tables, flags.repeats)
    return int(flags.strict and any(table.shorts for table in tables))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure this project's speed and size.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, as a smoke test")
    parser.add_argument(
        "--only",
        action="append",
        choices=list(MEASUREMENTS),
        metavar="NAME",
        help="only this one; repeatable",
    )
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="number of repetitions for each median (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables as JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help="update the tables in this Markdown file")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a row falls short")
    return parser


if __name__ == "__main__":
    leave(main())
