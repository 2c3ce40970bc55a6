"""The seams between the core and its features: what is asked, what is not, and what a run keeps of a feature."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import ValidationError
from temporalio import workflow
from temporalio.activity import _Definition
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from plansurvive.activities.lifecycle.offered import offered
from plansurvive.activities.tools.registry import OF_CORE, load_tools, reserved_names
from plansurvive.activities.tools.tool import no_fault
from plansurvive.features import FEATURES, packages
from plansurvive.features.worker_features import features_of_worker
from plansurvive.features.workflow_types import WORKFLOWS, PlanWorkflow, features_of
from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.child_state import ChildPlan, ParentLink
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Retry
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run import Result, Run, run_of, text_of
from plansurvive.plans.run.feature import NO_RULES, Rules, RuleSet
from plansurvive.plans.views.progress.events import result_view
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from plansurvive.workflows import plan as core
from plansurvive.workflows.feature import Collaborators, Features, InRun
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, work
from tests.kit.waiting import until
from tests.plans.building import NOW, step
from tests.plans.building import run_of as made_of

ROOT = Path(__file__).parents[2] / "features"


class Count(Part):
    """A part of a feature that there is not."""

    feature: ClassVar[str] = "counting"

    number: int = 0


@workflow.defn(name="PlanWorkflow", failure_exception_types=[PlanError, ValidationError])
class Chosen(core.PlanWorkflow):
    """The core, with those features that a worker of `worker_with` has."""

    features = Features()

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)

    @workflow.run
    async def run(self, *arguments: Any) -> dict[str, Any]:
        """As the core does."""
        return await super().run(*arguments)


def worker_with(client: Client, settings: Settings, *names: str) -> Worker:
    """A worker with no features but these."""
    Chosen.features = features_of(names)
    types = [Chosen if each is PlanWorkflow else each for each in WORKFLOWS]
    own = features_of_worker(client, settings, names=names)
    return build(client, settings, load_tools([LEDGER_TOOLS]), indexed=True, workflows=types, features=own)


def test_each_folder_is_a_feature_and_each_feature_a_folder() -> None:
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == set(FEATURES)


async def test_no_tool_may_have_the_name_of_an_activity_that_the_core_or_a_feature_offers(
    temporal_client: Client, settings: Settings
) -> None:
    features, declared = features_of_worker(temporal_client, settings), set[str]()
    for each in features.in_worker:
        [package] = [found for found in packages() if found.__name__.endswith(f".{each.feature}")]
        own = {*getattr(package, "ACTIVITIES", ())}
        assert names_of(each.activities()) <= own, each.feature
        declared |= own
    found = names_of(offered(temporal_client, settings, {}, indexed=False, fault=no_fault, features=features))
    assert found - {*OF_CORE} == declared
    assert found <= reserved_names()


def names_of(activities: Iterable[Callable[..., object]]) -> set[str]:
    definitions = [_Definition.must_from_callable(each) for each in activities]
    return {each.name for each in definitions if each.name}


def test_a_part_is_kept_once_it_is_used_and_costs_nothing_before() -> None:
    run = made_of(step("a"))
    empty = text_of(run)
    assert run.part(Count).number == 0
    assert text_of(run) == empty
    run.part(Count).number = 3
    assert run_of(text_of(run)).part(Count).number == 3


def test_a_part_of_a_feature_that_is_not_here_passes_through() -> None:
    run = made_of(step("a"))
    run.part(Count).number = 3
    assert Run.model_validate_json(text_of(run_of(text_of(run)))).part(Count).number == 3


def test_a_part_that_the_core_reads_is_refused_with_its_run_if_it_is_damaged() -> None:
    run = made_of(step("a"))
    empty = text_of(run)
    run.parent = ParentLink(plan_id="above", step_id="s")
    run.steps["a"].child = ChildPlan(kind="inline", plan_id="below")
    data = json.loads(text_of(run))
    assert data["parts"]["children"] == {"parent": {"planId": "above", "stepId": "s"}}
    assert run_of(data) == run
    for damaged in ({"parts": {"children": {"parent": 1}}}, {"parts": {"hosts": {"host": 1}}}):
        with pytest.raises(ValidationError):
            run_of(data | damaged)
    data["steps"]["a"]["parts"] = {"children": {"done": -1}}
    with pytest.raises(ValidationError):
        run_of(data)
    run.parent = run.steps["a"].child = None
    assert text_of(run) == empty


def test_a_part_that_is_set_in_a_copy_leaves_the_run_that_was_copied() -> None:
    run = made_of(step("a"))
    run.parent = ParentLink(plan_id="above", step_id="s")
    copy = run.model_copy()
    copy.agents, copy.parent = {"a": {}}, None
    assert (run.agents, run.parent) == ({}, ParentLink(plan_id="above", step_id="s"))


def test_a_seam_that_nobody_fills_is_not_asked() -> None:
    class Silent(InRun):
        feature = "silent"

    class Shows(InRun):
        feature = "shows"
        times = 0

        def shown(self) -> None:
            Shows.times += 1

    made: list[InRun] = [kind.__new__(kind) for kind in (Silent, Shows)]
    collected = Collaborators(made)
    collected.shown()
    assert Shows.times == 1
    seams = (collected._shown, collected._turned, collected._resting, collected._ended)
    assert [len(each) for each in seams] == [1, 0, 0, 0]


@pytest.mark.parametrize("left_out", [*FEATURES, "all"])
async def test_plans_run_with_each_feature_left_out_and_with_all_of_them(
    left_out: str, temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    names = [name for name in FEATURES if left_out not in (name, "all")]
    loop = {"id": "c", "forEach": "`[1, 2]`", "steps": [work("in")]}
    async with worker_with(temporal_client, settings, *names):
        plans = Plans(temporal_client, queue, workspace)
        started = await plans.start([work("a"), work("b", "a", requiresApproval=True), loop], timeout=600)
        await started.until_asked("b")
        await started.approve("b")
        assert (await started.ended())["status"] == "completed"
        assert (await started.handle.query("state"))["facts"].get("features", []) == names


async def test_a_step_of_a_feature_that_its_worker_lacks_fails_and_its_messages_are_refused(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    ask = {"id": "ask", "tool": "ask", "args": {"question": "Which?"}, "critical": False}
    async with worker_with(temporal_client, settings, *(name for name in FEATURES if name != "waiting")):
        plans = Plans(temporal_client, queue, workspace)
        started = await plans.start([ask, work("b", requiresApproval=True)])
        await started.until_asked("b")
        await started.signal("answer", {"stepId": "ask", "value": "x"})
        await started.until_logged("refused", "UNKNOWN_SIGNAL")
        await started.approve("b")
        view = await started.ended()
    assert view["steps"][0]["result"]["code"] == "UNKNOWN_TOOL"


@pytest.mark.parametrize(
    ("left_out", "ended"), [("children", ["failed", "failed"]), ("agents", ["completed", "failed"])]
)
async def test_agents_and_plans_as_steps_fail_on_a_worker_without_their_feature(
    left_out: str, ended: list[str], temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    plan = {"id": "plan", "tool": "plan", "args": {"steps": [work("in")]}, "critical": False}
    agent = {"id": "agent", "tool": "agent", "args": {"objective": "Look."}, "critical": False}
    async with worker_with(temporal_client, settings, *(name for name in FEATURES if name != left_out)):
        plans = Plans(temporal_client, queue, workspace)
        started = await plans.start([plan, agent, work("b", requiresApproval=True)])
        await started.until_asked("b")
        if left_out == "children":
            for name in ("agent_progress", "budget_answer", "place", "place_report"):
                await started.signal(name, {"stepId": "plan"})
            await started.until_logged("refused", "UNKNOWN_SIGNAL")
        await started.approve("b")
        view = await started.ended()
    assert [each["status"] for each in view["steps"]] == [*ended, "completed"]
    assert all(each["result"]["code"] == "UNKNOWN_TOOL" for each in view["steps"] if each["status"] == "failed")


@pytest.mark.slow
async def test_a_plan_waits_for_a_worker_that_has_the_features_it_was_begun_with(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    plans = Plans(temporal_client, queue, workspace)
    async with build(temporal_client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
        started = await plans.start([work("a", requiresApproval=True)])
        await started.until_asked("a")

    async def failed() -> bool:
        history = await started.handle.fetch_history()
        tasks = [each for each in history.events if each.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED]
        return any("FEATURE_MISSING" in each.workflow_task_failed_event_attributes.failure.message for each in tasks)

    async with worker_with(temporal_client, settings):
        await started.signal("approve", {"stepId": "a"})
        await until(failed, "the task fails for want of a feature")
    async with build(temporal_client, settings, load_tools([LEDGER_TOOLS]), indexed=True):
        assert (await started.ended())["status"] == "completed"


def test_what_goes_along_with_a_call_and_stays_with_its_result_is_a_part_of_each() -> None:
    run, a = made_of(step("a")), step("a")
    call = Call(args={}, plan_id="p", step_id="a", key="k", workspace="/w", timeout=1.0, retry=Retry())
    result, bare = Result(ok=True, timestamp=NOW), call.model_dump_json(exclude_defaults=True)
    NO_RULES.settled(run, a, Return(duration=0.0), result)
    assert NO_RULES.extended(run, a, call).model_dump_json(exclude_defaults=True) == bare
    assert result.parts == {}
    counting = Rules("counting", extend=lambda *_: Count(number=1), settled=lambda *_: Count(number=2))
    rules = RuleSet([Rules("silent"), counting])
    rules.settled(run, a, Return(duration=0.0), result)
    sent = Call.model_validate_json(rules.extended(run, a, call).model_dump_json(exclude_defaults=True))
    assert (sent.part(Count).number, result.part(Count).number) == (1, 2)
    assert result_view(result)["counting"] == {"number": 2}


async def test_a_plan_that_nobody_can_write_is_refused(
    temporal_client: Client, settings: Settings, queue: str, workspace: Path
) -> None:
    async with worker_with(temporal_client, settings, *(name for name in FEATURES if name != "planning")):
        plans = Plans(temporal_client, queue, workspace)
        started = await plans.start_with({"request": "write two notes", "options": {"workspace": str(workspace)}})
        with pytest.raises(WorkflowFailureError) as failed:
            await started.handle.result()
    assert isinstance(failed.value.cause, ApplicationError)
    assert "no feature of its worker writes plans" in str(failed.value.cause)
