"""Results of earlier runs in whole plans: after an edit, what depends on it runs and nothing else."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.cache.commands import why_of
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import Plans, View, step
from tests.workflows.conftest import MakeWorker
from tests.workflows.joining_tools import CALLS

pytestmark = [pytest.mark.modes("plain"), pytest.mark.uses("cache")]
WIDTH, LAYERS = 40, 4
"""Steps that read a file each, and layers of as many that join what two of the layer before have written: 200."""
SOURCES = 40
TOOLS = str(Path(__file__).parent / "joining_tools.py")


def pipeline(seed: int, width: int, layers: int) -> list[dict[str, Any]]:
    """Steps over real files: sources are copied, and joined in layers, two files into one each time."""
    chance = random.Random(seed)
    steps: list[dict[str, Any]] = [
        {"id": f"n{number}", "tool": "join", "args": {"files": [f"in/{number}.txt"], "target": f"out/0/{number}.txt"}}
        for number in range(width)
    ]
    for layer in range(1, layers + 1):
        for number in range(width):
            first, second = chance.sample(range(width), 2)
            before = [steps[(layer - 1) * width + each] for each in (first, second)]
            files = [each["args"]["target"] for each in before]
            args = {"files": files, "target": f"out/{layer}/{number}.txt"}
            steps.append({"id": f"s{layer}_{number}", "tool": "join", "args": args,
                          "dependsOn": [each["id"] for each in before]})  # fmt: skip
    return steps


def depending_on(steps: Sequence[dict[str, Any]], path: str) -> set[str]:
    """The steps that a file reaches: computed from the lists of files alone."""
    changed, found = {path}, set[str]()
    for each in steps:  # in order: files are made before they are read
        if changed & set(each["args"]["files"]):
            changed.add(each["args"]["target"])
            found.add(each["id"])
    return found


def expected_text(steps: Sequence[dict[str, Any]], sources: dict[str, str]) -> dict[str, str]:
    """What every file must hold."""
    texts = dict(sources)
    for each in steps:
        texts[each["args"]["target"]] = "".join(texts[path] for path in each["args"]["files"])[-200:]
    return texts


def ran(view: View) -> set[str]:
    """The steps whose tool was called, as the plan says it."""
    return {each["id"] for each in view["steps"] if not each["result"].get("cache", {}).get("takenFrom")}


def called(workspace: Path) -> set[str]:
    """The targets of the calls since the last look, as the tool itself wrote them down."""
    path = workspace.parent / CALLS
    found = set(path.read_text().split()) if path.exists() else set()
    path.unlink(missing_ok=True)
    return found


def files_below(folder: Path) -> dict[str, str]:
    """All files with their texts."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.txt")}


@pytest.fixture
def serving(temporal_client: Client, settings: Settings) -> MakeWorker:
    """Makes workers that have the tool."""

    def make(**changed: Any) -> Worker:
        return build(temporal_client, settings.with_flags(**changed), load_tools([TOOLS]), indexed=True)

    return make


@pytest.fixture
def joining(idle: Plans, settings: Settings) -> Iterator[Plans]:
    """Plans over forty files."""
    (idle.workspace / "in").mkdir()
    for number in range(SOURCES):
        (idle.workspace / "in" / f"{number}.txt").write_text(f"source {number};")
    yield idle
    (idle.workspace.parent / CALLS).unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "layers"), [(5, 2), pytest.param(WIDTH, LAYERS, marks=pytest.mark.slow)], ids=["15 steps", "200 steps"]
)
async def test_after_one_file_was_edited_those_steps_run_that_depend_on_it_and_no_others(
    joining: Plans, serving: MakeWorker, width: int, layers: int
) -> None:
    steps, workspace = pipeline(18, width, layers), joining.workspace
    assert len(steps) == width * (1 + layers)
    names = [each["id"] for each in steps]
    async with serving():
        first = await joining.run(steps, title="joined", cache=True)
        assert (first["status"], ran(first), len(called(workspace))) == ("completed", set(names), len(steps))
        again = await joining.run(steps, title="joined", cache=True)
        assert (again["status"], ran(again), called(workspace)) == ("completed", set(), set())
        assert [each["result"]["value"] for each in again["steps"]] == [
            each["result"]["value"] for each in first["steps"]
        ]
        # The source with the longest reach: by chance, some are joined into nothing.
        reach = {path: depending_on(steps, path) for path in (f"in/{number}.txt" for number in range(width))}
        source = max(reach, key=lambda path: len(reach[path]))
        (workspace / source).write_text("edited;")
        edited = await joining.run(steps, title="joined", cache=True)
        wanted = reach[source]
        assert 1 < len(wanted) < len(steps)
        assert ran(edited) == wanted
        assert called(workspace) == {each["args"]["target"] for each in steps if each["id"] in wanted}
        shutil.rmtree(workspace / "out")
        whole = await joining.run(steps, title="joined", cache=True)
        assert (ran(whole), called(workspace)) == (set(), set())
    sources = {path: text for path, text in files_below(workspace).items() if path.startswith("in/")}
    assert files_below(workspace) == expected_text(steps, sources)


TWO = [
    {"id": "a", "tool": "join", "args": {"files": ["in/1.txt"], "target": "a.txt"}},
    {"id": "b", "tool": "write_file", "args": {"path": "b.txt", "content": "{{a.length}}"}},
    {"id": "c", "tool": "read_file", "args": {"path": "b.txt"}, "dependsOn": ["b"]},
]


async def test_why_leads_from_a_step_to_the_file_that_was_edited(
    joining: Plans, serving: MakeWorker, temporal_client: Client
) -> None:
    async with serving():
        await joining.run(TWO, title="two", cache=True, owns=["**"])
        (joining.workspace / "in" / "1.txt").write_text("another length")
        started = await joining.start(TWO, title="two", cache=True, owns=["**"])
        assert ran(await started.ended()) == {"a", "b", "c"}
        told = await why_of(temporal_client, started.id, "b")
        assert [cause.step_id for cause in told.causes] == ["b", "a"]
        assert "argument content changed, which holds a value of a" in told.text
        assert "file in/1.txt changed: " in told.text
        again = await joining.start(TWO, title="two", cache=True, owns=["**"])
        assert ran(await again.ended()) == set()
        assert (await why_of(temporal_client, again.id, "b")).causes[0].taken_from
        plain = await joining.start(TWO, title="two", owns=["**"])
        await plain.ended()
        assert "neither plan nor step asks for earlier results" in (await why_of(temporal_client, plain.id, "b")).text


async def test_a_step_that_gives_the_same_as_before_does_not_make_the_next_ones_run(
    joining: Plans, serving: MakeWorker
) -> None:
    async with serving():
        await joining.run(TWO, title="two", cache=True, owns=["**"])
        (joining.workspace / "in" / "1.txt").write_text("SOURCE 1;")  # as long as before
        view = await joining.run(TWO, title="two", cache=True, owns=["**"])
    assert ran(view) == {"a"}


async def test_approvals_are_asked_for_in_every_run_and_denials_count(joining: Plans, serving: MakeWorker) -> None:
    asking = [{**TWO[0], "requiresApproval": True, "cache": True}]
    async with serving():
        for run in range(3):
            started = await joining.start(asking)
            await started.until_asked("a")
            await (started.deny("a") if run == 1 else started.approve("a"))
            view = await started.ended()
            assert view["status"] == ("partial" if run == 1 else "completed")
            assert bool(called(joining.workspace)) == (run == 0)


def chosen(choice: dict[str, str]) -> dict[str, Any]:
    """Options of a start that say this of earlier results."""
    return {"parts": {"cache": choice}} if choice else {}


async def test_a_plan_or_step_that_says_no_and_a_run_that_takes_nothing_call_their_tools(
    joining: Plans, serving: MakeWorker
) -> None:
    one = TWO[:1]
    async with serving():
        first = await joining.start(one, title="t", cache=True)
        await first.ended()
        plan_id = first.id.removeprefix("plan-")
        for options, plan, taken in [
            ({}, {"cache": True}, True),
            ({}, {"cache": False}, False),
            ({}, {}, False),
            ({"cache": "fresh"}, {"cache": True}, False),
            ({"cache": "on"}, {}, True),
            ({"since": "another"}, {}, False),
            ({"since": plan_id}, {"cache": False}, True),
        ]:
            view = await joining.run(one, chosen(options), title="t", **plan)
            assert (ran(view) == set()) == taken, (options, plan)
        no = [{**one[0], "cache": False}]
        assert ran(await joining.run(no, chosen({"since": plan_id}), cache=True)) == {"a"}


@pytest.mark.slow
async def test_rounds_of_a_repetition_are_always_called(joining: Plans, serving: MakeWorker) -> None:
    repeated = {**TWO[0], "repeat": {"until": "length > `1000`", "limit": 3, "delay": 0.01}}
    async with serving():
        view = await joining.run([repeated], cache=True)
    assert step(view, "a")["result"]["code"] == "REPEAT_LIMIT"
    assert (joining.workspace.parent / CALLS).read_text().split() == ["a.txt"] * 3


async def test_a_worker_with_the_cache_off_calls_every_tool(joining: Plans, serving: MakeWorker) -> None:
    async with serving(cache="off"):
        for _ in range(2):
            assert ran(await joining.run(TWO[:1], cache=True)) == {"a"}


async def test_steps_that_can_never_take_a_result_are_said_when_the_plan_is_checked(settings: Settings) -> None:
    from plansurvive.client.feature import language
    from plansurvive.plans.definition.checks.validation import problems
    from plansurvive.plans.model import Plan

    given = [
        {"id": "a", "tool": "run_command", "args": {"command": "make"}, "cache": True},
        {"id": "b", "tool": "run_command", "args": {"command": "make"}, "cache": {"reads": ["../x"]}},
        {"id": "c", "tool": "http_request", "args": {"url": "http://x/"}, "cache": True},
        {"id": "d", "tool": "run_command", "args": {"command": "make"}, "cache": {"reads": ["src/**"]}},
    ]
    specs = {name: each.spec for name, each in load_tools([]).items()}
    found = [
        (each.step_id, each.code)
        for each in problems(Plan.model_validate({"steps": given}), specs, language=language())
    ]
    assert found == [("a", "CACHE_NEVER"), ("b", "BAD_CACHE"), ("c", "CACHE_NEVER")]
