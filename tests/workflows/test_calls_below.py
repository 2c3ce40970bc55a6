"""Calls of agents inside items and child plans: each view shows them, with the arguments that they were made with."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from temporalio.client import Client

from plansurvive.client import runs
from plansurvive.client.cli.items.inside import inside_json, inside_text
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.live.in_flight import in_flight
from plansurvive.client.live.steps import by_step, joined, with_blocks
from plansurvive.features.cache.commands import why_of
from plansurvive.features.outputs.feed import Began, feed
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.connect import Connection, Origin, storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore
from tests.apps.web.page_client import browsing, service_for
from tests.client.cli.follow.test_board import drawn
from tests.kit.driving import Plans, Started
from tests.kit.waiting import until
from tests.workflows.agents import Serving, serving
from tests.workflows.test_control_matrix import decide_all
from tests.workflows.whole_plan import AGENTS, NAMES, at_work, started, story

pytestmark = pytest.mark.modes("plain")


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


async def labels(client: Client, settings: Settings, plan: Started, step: str = "") -> set[str]:
    """The attempts that `plan logs` shows, of the plan or one of its steps."""
    store = ValueStore(storage(settings))
    events = feed(client, store, plan.id, step)
    return {event.of.label async for event in events if isinstance(event, Began)}


@pytest.mark.on_server("describes running activities")
async def test_every_view_shows_the_calls_of_agents_in_items_and_child_plans_with_their_arguments(
    serve: Serving, settings: Settings
) -> None:
    async with serve(story()) as agents:
        plan = await started(agents)
        client, name = plan.client, plan.id.removeprefix("plan-")
        here = Connected(settings, Connection(client, "tests", Origin.CONFIGURED), keeps_worker=False)
        # 1. While the call runs: which tool, of which item.
        await until(lambda: at_work(agents.plans) == set(NAMES), "all agents work")
        seen = await in_flight(client, plan.id)
        assert {(each.step_id, each.what) for each in seen} == {
            ("ag", "work"), ("each[a].ag", "work"), ("sub", "ag: work"), ("sub", "deep/ag: work"),
            ("many[0..0]", "many[x]: work"),
        }  # fmt: skip
        rows = drawn(joined(await runs.brief(client, plan.id), with_blocks(by_step(seen))), height=40, width=120)
        told = {"ag": "work", "sub": "ag: work", "each": "[a].ag: work", "many": "[0..0]: many[x]: work"}
        for step, line in told.items():
            assert [row for row in rows if re.search(rf"▸ {step} .* {re.escape(line)} ", row)], "\n".join(rows)
        agents.plans.go()
        await decide_all(plan)
        assert (await plan.ended())["status"] == "completed"

        # 2. `plan show`: the tools of a loop as of a step; by the step's path each call, its arguments, its agent.
        whole = await runs.text(client, plan.id, detailed=True)
        assert whole.count("Tools: work (1 call), delete_file (1 call)") == 2, whole
        for path, called in zip(AGENTS, NAMES, strict=True):
            shown = await inside_text(here, name, path, everything=False)
            assert f'work {{"name": "{called}", "until": "go.txt"}}, ' in shown
            assert f'delete_file {{"path": "{called}.txt"}}, ' in shown
            [agent] = [row.split()[-1] for row in shown.splitlines() if "Agent: plan show agent-" in row]
            steps = (await runs.show(client, agent)).steps
            assert [each.args for each in steps][-1] == {"path": f"{called}.txt"}, "the agent's own view"
            assert "the model asked for this call" in (await why_of(client, agent, "call_1")).text

            # 3. JSON.
            page = await inside_json(here, name, path, everything=False)
            assert [call["args"] for call in page["step"]["calls"]] == [
                {"name": called, "until": "go.txt"}, {"path": f"{called}.txt"}
            ]  # fmt: skip
        history = (await runs.show(client, plan.id)).step_tool_history["2"]
        assert [(call.step_id, call.args) for call in history][1] == ("each[a].ag", {"path": "a.txt"})

        # 4. `plan logs` of the plan and of one step, by the same names; `plan why`.
        for path in AGENTS:
            assert (await why_of(client, plan.id, path)).step_id == path.rpartition("/")[2]
            assert f"{path}.call_1" in await labels(client, settings, plan, path)
        with pytest.raises(PlanError, match="no step 'none'"):
            await labels(client, settings, plan, "sub/none")

        # 5. The web page.
        async with browsing(service_for(settings, client)) as browser:
            for plan_id, step_id, called in (
                (name, "ag", "top"), (name, "each[a].ag", "a"), (f"{name}-sub", "ag", "mid"),
            ):  # fmt: skip
                text = (await browser.get(f"/plans/{plan_id}/steps/{step_id}")).text
                calls = text.partition("Attempts and calls")[2]
                assert re.findall(r'<pre class="call">\s*path +│ (\S+)', calls) == [f"{called}.txt"], calls
