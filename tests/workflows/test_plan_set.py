"""What the commands call "the plan's": a plan with an agent, a child plan, items, an agent as an item in that child,
and an earlier run, and every verb over all of them.

`CELLS` is the table: for a verb and what is inside, what must be said of it, or a sentence saying why the cell means
nothing. A verb is a function that returns what it says of the plan, as a set of texts. To add one, add it to `VERBS`
with its cells: one that is missing fails. `test_matrix` has the table of all verbs, those that control plans as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from plansurvive.client import runs
from plansurvive.client.verbs import resume
from plansurvive.features.audit.report import audit
from plansurvive.features.cache.commands import why_of
from plansurvive.features.files.verbs import would_undo
from plansurvive.features.outputs.attempts import Attempts
from plansurvive.features.outputs.feed import raw
from plansurvive.features.upkeep.prune import prune
from plansurvive.plans.activity_io import STDOUT
from plansurvive.runtime.connect import connect, storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore
from tests.kit.driving import Plans, Started
from tests.workflows.agents import call, says, serving
from tests.workflows.conftest import MakeWorker

pytestmark = [
    pytest.mark.modes("plain"),
    pytest.mark.on_server("a client of its own, and lists"),
    pytest.mark.uses("children"),
]

NUMBERS = "seq 1 4000"
"""A command whose output is too long for the history: it is kept in the value store."""
FREE = {"requiresApproval": False}
READY = "ready.txt"


def wrote(name: str, *needs: str) -> dict[str, Any]:
    """A command that writes a file named after its step, and much output."""
    args = {"command": f"echo {name} > {name}.txt; {NUMBERS}"}
    return {"id": name, "tool": "run_command", "args": args, "dependsOn": [*needs], **FREE}


def agent(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    """An agent that writes a file by each kind of tool."""
    return {"id": name, "tool": "agent", "args": {"objective": f"Write {name}."}, "dependsOn": [*needs], **more}


def story(name: str) -> list[dict[str, Any]]:
    """What the model of an agent answers."""
    calls = [
        call("write_file", path=f"{name}-file.txt", content=name),
        call("run_command", command=f"echo {name} > {name}-command.txt; {NUMBERS}"),
    ]
    return [says({"tool_calls": calls}), says({"answer": f"{name} is written"})]


STEPS: list[dict[str, Any]] = [
    agent("ag"),
    {"id": "sub", "tool": "plan", "dependsOn": ["ag"],
     "args": {"steps": [wrote("child"), agent("inner", "child", forEach={"items": ["a"], "key": "@"})]}},
    {"id": "each", "dependsOn": ["sub"], "forEach": {"items": ["x", "y"], "key": "@"}, "tool": "run_command",
     "args": {"command": "echo {{item}} > item-{{item}}.txt; " + NUMBERS}, **FREE},
    wrote("before", "each"),
    {"id": "late", "tool": "run_command", "dependsOn": ["before"], "retry": {"attempts": 1}, **FREE,
     "args": {"command": f"cat {READY} && echo late > late.txt"}},
]  # fmt: skip


@dataclass(frozen=True)
class Whole:
    """The plan, resumed once and ended, and what is needed to look at it."""

    plans: Plans
    settings: Settings
    first: str
    last: str

    def workflow(self, name: str) -> str:
        """The id of a workflow as the cells say it: `FIRST` and `LAST` stand for the two runs."""
        return name.replace(self.last, "LAST").replace(self.first, "FIRST")


@pytest_asyncio.fixture
async def whole(idle: Plans, settings: Settings, make_worker: MakeWorker) -> AsyncIterator[Whole]:
    """Agents and all have worked in the first run; the second one did what the first could not."""
    client = await connect(settings)  # with the state directory of the worker, as `prune` needs it
    plans = replace(idle, client=client)
    async with serving(plans, partial(make_worker, client=client))([*story("ag"), *story("inner")]):
        first = await plans.start(STEPS, {"approveAll": True})
        view = await first.ended()
        assert view["status"] == "partial", (view["problems"], view["log"])
        (plans.workspace / READY).write_text("now")
        last = Started(client, (await resume.resume(client, first.id)).workflow_id)
        assert (await last.ended())["status"] == "completed"
        names = (each.id.removeprefix("plan-") for each in (first, last))
        yield Whole(plans, settings, *names)


async def files_of(whole: Whole) -> set[str]:
    report = await runs.file_changes(whole.plans.client, whole.last)
    return {f"{call.step_id} ({call.tool}): {change.path}" for call in report.calls for change in call.changes}


async def dry_run(whole: Whole) -> set[str]:
    undone = await would_undo(whole.plans.client, whole.last, None)
    assert not undone.report.refused
    return {each.path for each in undone.report.restored}


async def undo(whole: Whole) -> set[str]:
    before = {path.name for path in whole.plans.workspace.iterdir()}
    report = await runs.undo(whole.plans.client, whole.last)
    gone = before - {path.name for path in whole.plans.workspace.iterdir()}
    assert gone == {each.path for each in report.restored if each.done}
    again = await runs.undo(whole.plans.client, whole.last)
    assert not report.refused
    assert (again.restored, again.refused) == ([], [])
    return gone


async def logs(whole: Whole) -> set[str]:
    known = await Attempts(whole.plans.client, whole.last).known()
    return {shown.label for shown in known.attempts}


async def audited(whole: Whole) -> set[str]:
    """The workflows that a chain of records leads to, from the last run on."""
    left, seen = [f"plan-{whole.last}"], set[str]()
    while left:
        seen.add(name := left.pop())
        record = await audit(whole.plans.client, name, whole.settings)
        left += [linked for linked in record.linked if linked not in seen]
    return {whole.workflow(name) for name in seen}


async def pruned(whole: Whole) -> set[str]:
    """The steps whose output is still there after all that nothing uses was removed."""
    found = await prune(whole.plans.client, whole.settings, older_than=timedelta())
    assert not found.removed
    return await with_output(whole)


async def with_output(whole: Whole) -> set[str]:
    store, labels = ValueStore(storage(whole.settings)), set[str]()
    places = {"ag.call_2": (f"agent-{whole.first}-ag", "call_2"), "each[x]": (whole.last, "each[x]"),
              "sub/child": (f"{whole.first}-sub", "child"), "before": (whole.first, "before"),
              "sub/inner[a].call_2": (await only_agent_below(whole, f"{whole.first}-sub"), "call_2")}  # fmt: skip
    for label, (plan, step) in places.items():
        output = b"".join([part async for part in raw(whole.plans.client, store, plan, step, STDOUT, None)])
        labels |= {label} if output.endswith(b"3999\n4000\n") else set()
    return labels


async def reasons(whole: Whole) -> set[str]:
    """What `plan why` says, of steps of both runs, and of those of the child plan by its id."""
    asked = {"ag": (whole.first, "ag"), "sub": (whole.first, "sub"), "each[x]": (whole.first, "each[x]"),
             "sub/inner[a]": (f"{whole.first}-sub", "inner[a]"), "before": (whole.last, "before"),
             "late": (whole.last, "late"), "last ag": (whole.last, "ag")}  # fmt: skip
    said = {label: await why_of(whole.plans.client, plan, step) for label, (plan, step) in asked.items()}
    return {f"{label}: {whole.workflow(why.causes[0].reasons[0])}" for label, why in said.items()}


async def only_agent_below(whole: Whole, child: str) -> str:
    """The id of the one agent of a child plan."""
    linked = (await audit(whole.plans.client, child, whole.settings)).linked
    return next(name for name in linked if name.startswith("agent-"))


AGENT, CHILD, ITEM, INNER, EARLIER = INSIDE = (
    "agent", "child plan", "item", "item of an agent in a child plan", "earlier run",
)  # fmt: skip
VERBS: dict[str, Callable[[Whole], Awaitable[set[str]]]] = {
    "files": files_of, "undo --dry-run": dry_run, "logs": logs, "audit": audited, "why": reasons, "prune": pruned,
    "undo": undo,
}  # fmt: skip
PATHS = {
    AGENT: {"ag-file.txt", "ag-command.txt"}, CHILD: {"child.txt"}, ITEM: {"item-x.txt", "item-y.txt"},
    INNER: {"inner-file.txt", "inner-command.txt"}, EARLIER: {"before.txt"},
}  # fmt: skip
CELLS: dict[tuple[str, str], set[str] | str] = {
    ("files", AGENT): {"ag.call_1 (write_file): ag-file.txt", "ag.call_2 (run_command): ag-command.txt"},
    ("files", CHILD): {"sub/child (run_command): child.txt"},
    ("files", ITEM): {"each[x] (run_command): item-x.txt", "each[y] (run_command): item-y.txt"},
    ("files", INNER): {
        "sub/inner[a].call_1 (write_file): inner-file.txt", "sub/inner[a].call_2 (run_command): inner-command.txt",
    },
    ("files", EARLIER): {"before (run_command): before.txt", "late (run_command): late.txt"},
    **{("undo --dry-run", inside): paths for inside, paths in PATHS.items()},
    **{("undo", inside): paths for inside, paths in PATHS.items()},
    ("logs", AGENT): {"ag.call_2"},
    ("logs", CHILD): {"sub/child"},
    ("logs", ITEM): {"each[x]", "each[y]"},
    ("logs", INNER): {"sub/inner[a].call_2"},
    ("logs", EARLIER): {"before", "late"},
    ("audit", AGENT): {"agent-FIRST-ag"},
    ("audit", CHILD): {"plan-FIRST-sub"},
    ("audit", ITEM): "an item is a step: its calls are entries of the plan's own record",
    ("audit", INNER): {"agent-FIRST-sub-inner-a-"},
    ("audit", EARLIER): {"plan-FIRST", "plan-LAST"},
    ("prune", AGENT): {"ag.call_2"},
    ("prune", CHILD): {"sub/child"},
    ("prune", ITEM): {"each[x]"},
    ("prune", INNER): {"sub/inner[a].call_2"},
    ("prune", EARLIER): {"before"},
    ("why", AGENT): {"ag: it was done by 'agent-FIRST-ag'"},
    ("why", CHILD): {"sub: it was done by 'FIRST-sub'"},
    ("why", ITEM): {"each[x]: it completed"},
    ("why", INNER): {"sub/inner[a]: it was done by 'agent-FIRST-sub-inner-a-"},
    ("why", EARLIER): {
        "before: its tool was not called in this run: it was done before 'FIRST' was continued",
        "last ag: its tool was not called in this run", "late: it completed",
    },
}  # fmt: skip


def test_every_verb_says_something_of_everything_inside() -> None:
    assert set(CELLS) == {(verb, inside) for verb in VERBS for inside in INSIDE}


async def test_a_plan_is_all_that_works_for_it(whole: Whole) -> None:
    """One plan for all verbs; they are in such an order that none takes away what a later one looks at."""
    for verb, ask in VERBS.items():
        said = await ask(whole)
        for inside in INSIDE:
            wanted = CELLS[verb, inside]
            missing = {each for each in wanted if not any(text.startswith(each) for text in said)}
            assert isinstance(wanted, str) or not missing, (verb, inside, missing, said)


@pytest.mark.slow
async def test_an_agent_is_undone_alone_by_its_own_id(whole: Whole) -> None:
    report = await runs.undo(whole.plans.client, f"agent-{whole.first}-ag")
    assert {each.path for each in report.restored} == PATHS[AGENT]
    assert not report.refused
    assert not [path for path in PATHS[AGENT] if (whole.plans.workspace / path).exists()]
    rest = await runs.undo(whole.plans.client, whole.last)
    assert {each.path for each in rest.restored} > PATHS[CHILD] | PATHS[ITEM] | PATHS[INNER] | PATHS[EARLIER]


def undoable(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps, each with an `undo` that writes its id, and that of its item, into the ledger."""
    return [{**each, "undo": {"tool": "append", "args": {"text": f"undo {each['id']}"}}} for each in steps]


async def test_a_rollback_undoes_the_steps_of_all_that_works_for_the_plan(idle: Plans, make_worker: MakeWorker) -> None:
    """The first run is interrupted, which undoes nothing. The second one fails, and undoes what both have done."""
    inner = undoable(wrote("child"), agent("inner", "child", forEach={"items": ["a"], "key": "@"}))
    steps = [
        *undoable(agent("ag")),
        {"id": "sub", "tool": "plan", "dependsOn": ["ag"], "args": {"steps": inner}},
        {"id": "each", "dependsOn": ["sub"], "forEach": {"items": ["x", "y"], "key": "@"}, "steps": undoable(
            {"id": "it", "tool": "append", "args": {"text": "did {{item}}"}},
        )},
        *undoable({**wrote("before", "each")}),
        {"id": "gate", "tool": "append", "args": {"text": "gate"}, "dependsOn": ["before"], "requiresApproval": True},
        {"id": "fails", "tool": "run_command", "args": {"command": "exit 1"}, "dependsOn": ["gate"],
         "critical": True, "retry": {"attempts": 1}, **FREE},
    ]  # fmt: skip
    writes = [says({"tool_calls": [call("write_file", path=f"{name}.txt", content=name)]}) for name in ("ag", "inner")]
    done = says({"answer": "written"})
    async with serving(idle, make_worker)([writes[0], done, writes[1], done]):
        first = await idle.start(steps, rollback=True)
        await first.until_asked("gate")
        assert undone(idle) == []
        await runs.interrupt(idle.client, first.id)
        await first.ended()
        assert undone(idle) == []
        last = Started(idle.client, (await resume.resume(idle.client, first.id)).workflow_id)
        await last.until_asked("gate")
        await last.approve("gate")
        view = await last.ended()
    assert view["status"] == "failed"
    # Latest first: the earlier run's step, the items, then the child plan's own, its agent's first, and the agent.
    found = undone(idle)
    assert (found[0], sorted(found[1:3]), found[3:]) == ("before", ["it", "it"], ["inner", "child", "ag"]), view["log"]


def undone(plans: Plans) -> list[str]:
    return [words[1] for words in plans.ledger if words[0] == "undo"]
