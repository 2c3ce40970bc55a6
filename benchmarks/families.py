"""The shapes of recorded real workflows: which task waits for which, and nothing else of them.

    python -m benchmarks.families WfInstances > tests/workflows/families.json

Of each family (benchmarks/real_dags.py says where they are from) the smallest instance. A shape lists, for each task,
the numbers of those before it that it waits for.
"""

from __future__ import annotations

import argparse
import json
from itertools import groupby
from pathlib import Path

from benchmarks.real_dags import Instance, find
from benchmarks.wf_format import TaskGraph


def family_of(instance: Instance) -> str:
    """Its folder; where a folder holds instances of many workflows, the instance is one by itself."""
    return instance.family if "/" in instance.family else instance.name.removesuffix(".json")


def smallest(folder: Path) -> dict[str, TaskGraph]:
    """The smallest instance of each family that can be a plan."""
    usable = sorted(((family_of(each), each.graph) for each in find(folder) if each.graph), key=lambda one: one[0])
    by_family = groupby(usable, key=lambda one: one[0])
    return {name: min((graph for _, graph in each), key=lambda graph: len(graph.tasks)) for name, each in by_family}


def shape(graph: TaskGraph) -> list[list[int]]:
    """What each task waits for."""
    number = {task.id: index for index, task in enumerate(graph.tasks)}
    return [sorted(number[parent] for parent in task.parents) for task in graph.tasks]


def main() -> None:
    """Print the shapes of a folder as JSON, one to a line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.families", description=__doc__)
    parser.add_argument("folder", type=Path, help="a clone of github.com/wfcommons/WfInstances")
    found = smallest(parser.parse_args().folder)
    lines = [f"{json.dumps(name)}:{json.dumps(shape(graph), separators=(',', ':'))}" for name, graph in found.items()]
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
