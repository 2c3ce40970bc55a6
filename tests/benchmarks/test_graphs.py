"""The measured graphs are plans, and the same ones every time."""

from __future__ import annotations

import pytest

from benchmarks import graphs
from benchmarks.graphs import Steps
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.model import Plan


@pytest.mark.parametrize(
    "steps",
    [
        graphs.chain(20),
        graphs.fan_out(20),
        graphs.layered(120),
        graphs.references(30, 100),
        graphs.skewed(60),
    ],
)
def test_every_graph_is_a_plan(steps: Steps) -> None:
    assert isinstance(read_plan({"steps": steps}), Plan)


def test_equal_arguments_give_equal_graphs() -> None:
    assert graphs.layered(200) == graphs.layered(200)
    assert graphs.skewed(100) == graphs.skewed(100)


def test_the_critical_path_is_the_longest_way_through_a_graph() -> None:
    def wait(name: str, seconds: float, *needs: str) -> dict[str, object]:
        return {"id": name, "tool": "wait", "args": {"seconds": seconds}, "dependsOn": list(needs)}

    steps = [wait("a", 1.0), wait("b", 2.0), wait("c", 3.0, "a"), wait("d", 0.5, "b", "c")]
    assert graphs.critical_path(steps) == 4.5
