"""Every view that shows what an agent asks says for which step of which plan it works, at any depth and in loops.

The views are those of the command line, as text and as data; the plan is `whole_plan`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from plansurvive.plans.views.models.card import command
from tests.client.cli.command import line_with, plan, running, written
from tests.kit.driving import Plans, Started
from tests.workflows.agents import Serving, serving
from tests.workflows.test_control_matrix import until_all_asked
from tests.workflows.whole_plan import CALLS, QUESTION, story
from tests.workflows.whole_plan import STEPS as PLAN

pytestmark = pytest.mark.modes("plain")
STEPS = {
    "ag/call_2": ("ag", ""), "sub/ag/call_2": ("ag", "-sub"), "sub/deep/ag/call_2": ("ag", "-sub-deep"),
    "each[a].ag/call_2": ("each[a].ag", ""), "many[0..0]/many[x]/call_2": ("many[x]", "-many-0-0-[0-9a-f]{8}"),
}  # fmt: skip
"""By what the plan calls it, the step that an agent works for, and what the id of its plan has at the end."""


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def unnamed(text: str, root: str) -> list[str]:
    """What is asked for which a text does not say the step and the plan of its agent."""
    sentence = r"agent agent-\S+ \(\"AGENT-\w+ works\.\"\)(?:, started by [^,]+)?, for step '{}' of plan {}{}(?![-\w])"
    return [path for path, (step, end) in STEPS.items()
            if not re.search(sentence.format(re.escape(step), root, end), text)]  # fmt: skip


async def said_to_followers(process: asyncio.subprocess.Process, root: str) -> None:
    """Read what follows a plan until it has said of every call whose it is, and how to decide."""
    ways = {path: re.escape(command(root, path, "approval")) + r"(?!\S)" for path in CALLS}
    for path, agent in ((CALLS[0], "ag"), (CALLS[3], r"each-a-ag-\w+")):  # a line of the agent's own step
        ways[path] = rf" {re.escape(STEPS[path][0])} +agent-{root}-{agent} is awaiting .* plan approve agent-"
    while ways:
        said = await line_with(process, "plan approve ")
        ways = {path: way for path, way in ways.items() if not re.search(way, said)}


@pytest.mark.slow
@pytest.mark.on_server("commands that call it")
async def test_an_agents_question_names_its_plan_and_step_in_every_view(
    serve: Serving, environ: Mapping[str, str], tmp_path: Path
) -> None:
    assert set(STEPS) == set(CALLS)
    async with serve(story()) as agents:
        agents.plans.go()
        root, file = agents.plans.queue, written(tmp_path / "plan.json", {"steps": PLAN})
        begun = Started(agents.plans.client, f"plan-{root}")
        # 1. Who runs or follows the plan.
        async with running(environ, "run", file, "--id", root) as process:
            await said_to_followers(process, root)
        async with running(environ, "watch", root) as process:
            await said_to_followers(process, root)
        await until_all_asked(begun, *CALLS, QUESTION)
        # 2. What is asked, whole: who asks, for which step of which plan.
        for arguments in (["pending"], ["pending", root]):
            assert unnamed((await plan(environ, *arguments)).out, root) == [], arguments
            items = (await plan(environ, *arguments, "--json")).json
            assert unnamed("\n".join(item["asker"] for item in items), root) == [], arguments
        # 3. The plan: under the step, with the command that names it by its path.
        shown = (await plan(environ, "show", root)).out
        assert [path for path in CALLS if f"Asks: {command(root, path, 'approval')} " not in shown] == []
        for step, path in (("each[a].ag", CALLS[3]), ("many[0..0]", CALLS[4])):
            assert f"Asks: {command(root, path, 'approval')} " in (await plan(environ, "show", root, step)).out
        # 4. The list of plans that await a person.
        rows = (await plan(environ, "list", "--awaiting", "--limit", "1000", "--json")).json
        [row] = [each for each in rows if each["planId"] == root]  # the server has plans of other tests
        assert set(row["waiting"]) == {each["stepId"] for each in row["asks"]} == {*CALLS, QUESTION}
        assert " and 5 more " in (await plan(environ, "list", "--awaiting", "--limit", "1000")).out
        await begun.handle.terminate()
