"""`make chaos`: rounds of random plans under random faults, until the time is over. Exit code 1 if anything was found.

    make chaos                                 an hour: the seeds kept first, then new ones
    make chaos ARGS="--minutes 1"              one round
    make chaos ARGS="--seed 7 --rounds 1"      that round again: the same plans, and faults drawn alike
    make chaos ARGS="--controls"               each defence with and without it: without it, the checker must find that
    make chaos ARGS="--waiting 1000"           so many waiting plans through a restart of everything

Seeds are printed. One that found something is added to seeds.txt beside this file, to be run every night from then on;
its record (histories, files, logs) stays in build/chaos.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from temporalio.runtime import Runtime, TelemetryConfig

from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal
from tests.chaos.night import clock
from tests.chaos.night.controls import CONTROLS
from tests.chaos.night.disk import namespace
from tests.chaos.night.figures import Figures
from tests.chaos.night.new_code import ROOT
from tests.chaos.night.restart import restarted
from tests.chaos.night.rounds import Setup, Verdict, run

SEEDS = Path(__file__).parent / "seeds.txt"
INSIDE = "CHAOS_INSIDE"
"""Set in the process that has a mount namespace of its own."""
ROUND_SECONDS = 45.0
SHORT_SECONDS = 25.0
"""Storm of a round when there are only minutes."""


def kept(path: Path = SEEDS) -> list[int]:
    """The seeds in the file: the first word of each line that is not a comment."""
    lines = (line.partition("#")[0].split() for line in path.read_text().splitlines())
    return [int(words[0]) for words in lines if words]


def seeds(flags: argparse.Namespace) -> Iterator[int]:
    """The seeds to run: the one asked for and those after it, or the kept ones and then new ones."""
    if flags.seed is not None:
        yield from range(flags.seed, flags.seed + 1_000_000)
    yield from kept() if flags.minutes > 5 else ()
    while True:
        yield random.SystemRandom().randrange(10**6)


async def night(flags: argparse.Namespace) -> int:
    """Run rounds; returns the exit code."""
    temporal = await find_temporal(Settings.read({}), print)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)))  # the server is away most of the time
    has_disk = INSIDE in os.environ
    base = Setup(flags.keep, temporal, has_disk, flags.storm or (ROUND_SECONDS if flags.minutes > 5 else SHORT_SECONDS))
    for reason in missing(has_disk):
        print(f"Left out: {reason}.", flush=True)
    if flags.controls or flags.control:
        return await controlled([flags.control] if flags.control else list(CONTROLS), base, flags.without)
    figures, deadline = Figures(), time.monotonic() + 60 * flags.minutes
    if flags.waiting:
        figures.add(await _judged(0, restarted(replace(base, folder=flags.keep / "waiting"), flags.waiting)))
    for number, seed in enumerate(seeds(flags) if not flags.waiting else (), 1):
        figures.add(await _judged(seed, replace(base, folder=flags.keep / str(seed))))
        if number == flags.rounds or time.monotonic() > deadline:
            break
    print(json.dumps(figures.shown(), indent=1))
    return 0 if figures.is_good else 1


async def controlled(names: Sequence[str], base: Setup, without: bool | None) -> int:
    """Run controls; returns the exit code. `without`: only with the defence, or only without it."""
    wrong = 0
    for name in names:
        control = CONTROLS[name]
        for is_there in [True, False] if without is None else [not without]:
            print(f"{'With' if is_there else 'Without'} {name}: ", end="", flush=True)
            if control.needs_disk and not base.has_disk:
                print("left out")
                continue
            folder = base.folder / f"control-{name.replace(' ', '-')}-{'on' if is_there else 'off'}"
            shutil.rmtree(folder, ignore_errors=True)
            verdict = await run(0, control.setup(folder, base.temporal, is_there, base.has_disk))
            found = verdict.said["counts"][control.finds]
            is_right = verdict.is_good if is_there else found > 0
            wrong += not is_right
            print(f"{'as it must be' if is_right else 'WRONG'}: {'; '.join(verdict.said['findings'])}", flush=True)
    return 1 if wrong else 0


async def _judged(seed: int, setup: Setup) -> Verdict:
    shutil.rmtree(setup.folder, ignore_errors=True)
    print(f"Seed {seed}: ", end="", flush=True)
    verdict = await run(seed, setup)
    _tell(verdict)
    return verdict


def missing(has_disk: bool) -> list[str]:
    """What cannot be done here, and why."""
    found = [] if has_disk else ["no mount namespace can be had, so disks are not filled"]
    return [*found, *filter(None, [clock.missing()])]


def _tell(verdict: Verdict) -> None:
    said = verdict.said
    found = ", ".join(f"{count} {kind}" for kind, count in said["counts"].items())
    print(f"{said['plans']} plans, {said['steps']} steps, {said['kills']} kills: {found}", flush=True)
    for finding in said["findings"]:
        print(f"  {finding}", flush=True)
    if verdict.is_good:
        shutil.rmtree(verdict.folder)
        return
    print(f"  the record: {verdict.folder}", flush=True)
    if verdict.seed not in kept():
        with SEEDS.open("a") as file:
            file.write(f"{verdict.seed}\n")


def main() -> int:
    """Read the arguments, and begin again in a mount namespace where that can be had."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.night", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="no round begins after them")
    parser.add_argument("--rounds", type=int, default=0, help="most rounds; 0: as many as there is time for")
    parser.add_argument("--seed", type=int, help="of the first round; the next ones follow it")
    parser.add_argument("--storm", type=float, default=0.0, help="seconds of faults in each round")
    parser.add_argument("--waiting", type=int, default=0, help="instead: so many waiting plans and a restart")
    parser.add_argument("--controls", action="store_true", help="instead: every defence, with it and without it")
    parser.add_argument("--control", choices=CONTROLS, help="instead: one of them")
    parser.add_argument(
        "--without", action=argparse.BooleanOptionalAction, help="only without that defence, or with it"
    )
    parser.add_argument("--keep", type=Path, default=ROOT / "build" / "chaos", help="directory for records")
    flags = parser.parse_args()
    if INSIDE not in os.environ and (way := namespace()):
        command = [*way, sys.executable, "-m", "tests.chaos.night", *sys.argv[1:]]
        os.execvpe(command[0], command, os.environ | {INSIDE: "1"})
    return asyncio.run(night(flags))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the SDK's threads do not always survive the end of the interpreter
