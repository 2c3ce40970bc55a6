"""Recorded runs of real workflows as plans, with and without express: whether each step has the same value.

    python -m benchmarks.families WfInstances

Of each family (benchmarks/real_dags.py says where they are from) the smallest instance runs. A step gives a digest of
its name and of the values of all it depends on, so that a value that is not the same shows in every step after it.
Exit code 0; 1 if a value differs or a plan does not complete.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.graphs import Steps
from benchmarks.leaving import leave
from benchmarks.real_dags import Instance, find
from benchmarks.stand import Stand

MOST = 2_000
"""Steps of an instance; of a family whose smallest one has more, none runs."""


def family_of(instance: Instance) -> str:
    """Its folder; where a folder holds instances of many workflows, the instance is one by itself."""
    return instance.family if "/" in instance.family else instance.name


def smallest(folder: Path) -> list[Instance]:
    """The smallest instance of each family."""
    usable = sorted((each for each in find(folder) if each.graph is not None), key=family_of)
    by_family = groupby(usable, key=family_of)
    return [min(each, key=lambda one: len(one.graph.tasks) if one.graph else 0) for _, each in by_family]


def steps_of(instance: Instance) -> Steps:
    """A step for each task, which uses the values of its parents."""
    assert instance.graph is not None
    rows = instance.graph.steps(seconds=1.0, slots=1)
    return [
        {
            "id": row["id"],
            "tool": "mix",
            "args": {"name": row["id"], "of": [f"${parent}" for parent in row["dependsOn"]]},
            "dependsOn": row["dependsOn"],
        }
        for row in rows
    ]


async def values(stand: Stand, steps: Steps, **fields: Any) -> dict[str, Any]:
    """By step, how it ended and its value; and what the run says of itself."""
    handle = await stand.start("plan", steps, **fields)
    await handle.result()
    view = await handle.query("plan")
    found = {each["id"]: (each["status"], (each.get("result") or {}).get("value")) for each in view["steps"]}
    codes = [each["code"] for each in view["log"] if each.get("code")]
    segments = {(each.get("result") or {}).get("express", {}).get("segment") for each in view["steps"]} - {None}
    return {"status": view["status"], "steps": found, "codes": codes, "segments": len(segments)}


async def compare(folder: Path) -> int:
    """Run all, print a line for each; the number that differ."""
    wrong = 0
    with TemporaryDirectory() as place:
        async with Stand(Path(place, "stand"), durable=False, kinds=("plan",)) as stand:
            for instance in smallest(folder):
                steps = steps_of(instance)
                if len(steps) > MOST:
                    print(f"{family_of(instance)}: {len(steps)} steps, too many")
                    continue
                plain, express = await values(stand, steps, express=False), await values(stand, steps, express=True)
                same = plain["steps"] == express["steps"] and not express["codes"] and express["segments"] > 0
                same = same and plain["status"] == express["status"] == "completed"
                wrong += not same
                verdict = "the same" if same else f"NOT THE SAME: {express['status']} {express['codes']}"
                print(
                    f"{family_of(instance)}: {len(steps)} steps, {express['segments']} segments: {verdict}", flush=True
                )
    return wrong


def main() -> int:
    """Compare the instances of a folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.families", description=__doc__)
    parser.add_argument("folder", type=Path, help="a clone of github.com/wfcommons/WfInstances")
    return int(asyncio.run(compare(parser.parse_args().folder)) > 0)


if __name__ == "__main__":
    sys.stdout.flush()
    leave(main())
