"""`python -m benchmarks`: measure, print the tables, keep them where asked. Exit code 0, whatever was measured.

`--strict` makes it 1 when a row falls short. Every measurement starts its own server and workers, and stops them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
from pathlib import Path

from benchmarks import (
    alternatives,
    document,
    latency,
    looking,
    payloads,
    reads,
    replay,
    scale,
    skew,
    speed,
    startup,
    waiting,
)
from benchmarks.bench import Bench
from benchmarks.tables import Table

MEASUREMENTS = {
    "speed": speed.measure,
    "skew": skew.measure,
    "latency": latency.measure,
    "payloads": payloads.measure,
    "waiting": waiting.measure,
    "replay": replay.measure,
    "startup": startup.measure,
    "reads": reads.measure,
    "looking": looking.measure,
    "scale": scale.measure,
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
    """Measure what the flags ask for; returns the exit code."""
    flags = _parser().parse_args()
    bench = Bench(repeats=flags.repeats, quick=flags.quick, say=lambda line: print(line, file=sys.stderr, flush=True))
    tables = asyncio.run(measured(bench, flags.only or list(MEASUREMENTS)))
    if flags.json:
        flags.json.write_text(json.dumps([table.model_dump() for table in tables], indent=2))
    if flags.write:
        document.write(flags.write, tables, flags.repeats)
    return int(flags.strict and any(table.shorts for table in tables))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure this project's speed and size.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size: to see that it works")
    parser.add_argument("--only", action="append", choices=list(MEASUREMENTS), metavar="NAME", help="may be repeated")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="medians are over so many (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the tables as JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the tables as Markdown")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a row falls short")
    return parser


if __name__ == "__main__":
    code = main()
    gc.collect()
    sys.stdout.flush()
    os._exit(code)
