"""Recorded workflows become plans, task by task; files that are none say what is wrong with them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import real_dags
from benchmarks.real_dags import find, ledger_faults
from benchmarks.wf_format import TaskGraph, Unreadable, read
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.model import MAX_STEPS, Plan


def instance(parents: dict[str, list[str]], **more: Any) -> dict[str, Any]:
    """An instance whose tasks run for 1, 2, 3, ... seconds."""
    tasks = [{"name": name, "id": name, "parents": each, "children": []} for name, each in parents.items()]
    ran = [{"id": name, "runtimeInSeconds": float(number)} for number, name in enumerate(parents, 1)]
    workflow = {"specification": {"tasks": tasks, "files": []}, "execution": {"makespanInSeconds": 9, "tasks": ran}}
    return {"name": "made up", "schemaVersion": "1.5", "workflow": workflow, **more}


DIAMOND = {"split": [], "left": ["split"], "right": ["split"], "join": ["left", "right"]}


def written(folder: Path, data: Any, name: str = "one.json") -> Path:
    """A file with this content."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return file


def graph_of(folder: Path, parents: dict[str, list[str]]) -> TaskGraph:
    return read(written(folder, instance(parents)))


def test_every_task_of_an_instance_becomes_a_step_with_its_dependencies(tmp_path: Path) -> None:
    steps = graph_of(tmp_path, DIAMOND).steps(16.0, 64, ledger="ledger.txt")
    plan = read_plan({"steps": steps})
    assert isinstance(plan, Plan)
    assert {step.id: step.depends_on for step in plan.steps} == DIAMOND
    assert {step.id: step.args["seconds"] for step in plan.steps} == {"split": 2, "left": 4, "right": 6, "join": 8}


def test_the_shortest_makespan_is_the_critical_path_or_all_work_over_the_slots(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, DIAMOND)
    assert (graph.depth, graph.least(64), graph.least(1)) == (3, 8.0, 10.0)


def test_tasks_whose_names_no_step_may_have_get_similar_ones(tmp_path: Path) -> None:
    names = {"NF.ALIGN (1)": [], "NF_ALIGN__1_": ["NF.ALIGN (1)"], "x" * 200: [], "x" * 201: ["x" * 200], "-": []}
    steps = graph_of(tmp_path, names).steps(1.0, 64)
    assert isinstance(read_plan({"steps": steps}), Plan)
    assert len({step["id"] for step in steps}) == 5


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("{", "not readable as JSON"),
        ("[" * 100_000, "not readable as JSON"),
        ([1], "an instance is an object with `schemaVersion` and `workflow`"),
        (instance(DIAMOND, schemaVersion="1.4"), "WfFormat '1.4'; only 1.5 is read"),
        (instance(DIAMOND, workflow={}), "`workflow.specification`: Field required, and 1 more"),
        (instance({}), "`workflow.specification.tasks`: List should have at least 1 item"),
        (instance({"a": ["b"]}), "task a (parent b) has a parent that does not exist"),
        (instance({"a": ["b"], "b": ["a"]}), "its tasks wait for each other"),
    ],
)
def test_a_file_that_is_no_instance_says_what_is_wrong(tmp_path: Path, data: Any, reason: str) -> None:
    with pytest.raises(Unreadable) as raised:
        read(written(tmp_path, data))
    assert reason in str(raised.value)


@pytest.mark.parametrize("seconds", [-1, "soon", None, float("inf"), float("nan")])
def test_a_run_time_that_is_none_is_refused(tmp_path: Path, seconds: Any) -> None:
    data = instance(DIAMOND)
    data["workflow"]["execution"]["tasks"][1]["runtimeInSeconds"] = seconds
    with pytest.raises(Unreadable, match=r"execution\.tasks\.1\.runtimeInSeconds"):
        read(written(tmp_path, data))


def test_a_task_listed_twice_or_never_run_is_refused(tmp_path: Path) -> None:
    twice, never = instance(DIAMOND), instance(DIAMOND)
    twice["workflow"]["specification"]["tasks"] *= 2
    never["workflow"]["execution"]["tasks"].pop()
    with pytest.raises(Unreadable, match="task split is there more than once, and 3 more"):
        read(written(tmp_path, twice))
    with pytest.raises(Unreadable, match="task join has no run time"):
        read(written(tmp_path, never))


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_graph_larger_than_a_plan_may_be_is_reported_and_not_run(tmp_path: Path) -> None:
    written(tmp_path, instance({f"t{number}": [] for number in range(MAX_STEPS + 1)}), "family/large.json")
    written(tmp_path, instance(DIAMOND), "family/small.json")
    large, small = find(tmp_path)
    assert large.problem == "20,001 tasks; a plan has at most 20,000 steps"
    assert (small.name, small.family, small.problem) == ("family/small.json", "family", "")


def test_a_ledger_shows_what_ran_twice_or_never_or_too_early(tmp_path: Path) -> None:
    steps = graph_of(tmp_path, {"a": [], "b": ["a"]}).steps(1.0, 64)
    assert ledger_faults(["start a", "end a", "start b", "end b"], steps) == []
    assert ledger_faults(["start a", "end a"], steps) == ["b began 0 times and ended 0 times"]
    assert ledger_faults(["start a", "start b", "end a", "end b"], steps) == ["b began before a ended"]
    twice = ["start a", "start a", "end a", "start b", "end b"]
    assert ledger_faults(twice, steps) == ["a began 2 times and ended 1 times"]
    assert ledger_faults(["start a", "end a", "start b", "end b", "end c"], steps) == [
        "c began 0 times and ended 1 times"
    ]


def test_a_directory_without_instances_is_refused(tmp_path: Path) -> None:
    said: list[str] = []
    assert real_dags.main([str(tmp_path)], said.append) == 2
    assert "no instance of WfFormat" in said[0]


@pytest.mark.slow
async def test_the_instances_of_a_directory_run_whole_and_the_rest_is_listed(
    tmp_path: Path, temporal_binary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, figures = tmp_path / "instances", tmp_path / "figures.json"
    written(folder, instance(DIAMOND), "made/diamond.json")
    written(folder, instance({f"t{n}": [f"t{n - 1}"] if n else [] for n in range(20)}), "made/chain.json")
    written(folder, "{", "made/broken.json")
    arguments = [str(folder), "--seconds", "0.5", "--pace", "0.001", "--json", str(figures)]
    assert await asyncio.to_thread(real_dags.main, arguments) == 1
    printed = capsys.readouterr().out
    assert "2 of 2" in printed
    assert "made/broken.json | not readable as JSON" in printed
    found = {each["name"]: each for each in json.loads(figures.read_text())["instances"]}
    assert found["made/diamond.json"]["tasks"] == 4
    assert found["made/chain.json"]["depth"] == 20
    assert found["made/chain.json"]["makespans"]["plan"][0] >= 0.5
