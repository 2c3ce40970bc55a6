"""A permission takes no other arguments, as the agent makes its call itself: the plan refuses them, and no way to
decide offers them. Each surface has its twin: a call of the plan's own, where it does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from plansurvive.apps.mcp.decisions.asks import ask_of
from plansurvive.apps.review.rows import detail
from plansurvive.apps.web.decisions.routes import decision_url
from plansurvive.client import runs
from plansurvive.client.cli.terminal.asking import ways
from plansurvive.client.feature import views_of_features
from plansurvive.client.runs import Choice, Pending
from plansurvive.plans.errors import Refused
from plansurvive.plans.views.models import PlanView
from tests.apps.web.decisions.page import seen
from tests.apps.web.page_client import browsing, service_for
from tests.client.cli.command import plan as command
from tests.client.cli.follow.test_screen import Terminal, terminal
from tests.features.coding_agents.scene import Scene, asked, code
from tests.kit.driving import Plans
from tests.kit.waiting import until

BRIEFLY = 'approve = "never"\nhold = 60'
OTHER = {"agent": "scripted", "title": "ls", "input": {"command": "ls"}}


def reviewed(item: Pending) -> str:
    """The step on the review screen, in full."""
    pending = item.model_dump(mode="json", exclude_unset=True, exclude={"plan_id", "title", "more"})
    step = {"id": item.step_id, "tool": item.tool, "args": {}, "needs": [], "dependsOn": [], "status": "pending",
            "description": "", "requiresApproval": False}  # fmt: skip
    head = {"id": "p", "title": "", "status": "running", "version": 1, "problems": [], "changes": []}
    view = PlanView.read({**head, "counts": {"total": 1}, "steps": [step], "pending": [pending]}, views_of_features())
    console = Console(file=StringIO(), width=100)
    with console.capture() as captured:
        console.print(detail(view, view.steps[0], {}))
    return captured.get()


SURFACES: dict[str, tuple[Callable[[Pending], str], str]] = {
    "plan pending": (lambda item: "\n".join(ways("p", item)), "--args"),
    "review": (reviewed, "e edits"),
    "MCP": (lambda item: json.dumps(ask_of(item).request()), ""),
}
"""By way to decide, what it shows, and what is there where arguments may be changed; empty: never."""


@pytest.mark.parametrize("as_asked", [True, False])
@pytest.mark.parametrize("surface", SURFACES)
def test_other_arguments_are_offered_for_calls_of_the_plan_alone(surface: str, as_asked: bool) -> None:
    args = {"title": "make test"}
    item = Pending(plan_id="p", step_id="p1", kind="approval", tool="work", args=args, as_asked=as_asked)
    shown, offer = SURFACES[surface]
    assert (bool(offer) and offer in shown(item)) is (bool(offer) and not as_asked)
    if not offer:
        assert "arguments" not in shown(item)


@pytest.mark.uses("agents", "children")
async def test_a_permission_is_approved_as_it_is_or_denied_and_counted_with_the_cost(
    idle: Plans, scene: Scene, environ: dict[str, str]
) -> None:
    spends: list[dict[str, Any]] = [{"tokens": 1_500}, {"call": "rg cart", "kind": "search"}]
    asks: dict[str, Any] = {"ask": "make test", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}
    scene.script([*spends, {"write": "new.txt", "content": "x"}, asks], toml=BRIEFLY)
    service = service_for(scene.settings, scene.client)
    async with scene.worker(), browsing(service) as browser:
        plan = await idle.start([code()])
        agent, item = await asked(plan)
        for name, step_id in ((plan.id, "code/p1"), (agent.id, "p1")):
            with pytest.raises(Refused, match="approve or deny it as it is"):
                await runs.approve(scene.client, name, Choice(step_id=step_id, args=OTHER))
            result = await command(environ, "approve", name, step_id, "--args", json.dumps(OTHER))
            assert (result.code > 0, "approve or deny it as it is" in result.err) == (True, True), result
            assert "these arguments" not in result.err
        page = await seen(browser, decision_url(agent.id, "p1"))
        assert "make test" in page.text
        assert "other arguments" not in page.text
        form = page.form("/approve")
        form.fields.append(("edited", "1"))
        answer = await form.send(browser, "Approve")
        assert "can only be approved as it is" in answer.text
        await runs.approve(scene.client, plan.id, Choice(step_id="code/p1", digest=item["digest"]))
        await plan.ended()
        text = " ".join((await seen(browser, f"/plans/{plan.id}/cost?now=1")).text.split())
    assert scene.chosen() == ["yes"]
    assert "Costs are what coding agents say" in text
    # Agent, step, cost, tokens, calls (a search, a command), files, decisions: a cell each.
    assert f"{agent.id}code1.5 USD1,500211 approved" in text, text


def read_and_approved(screen: Terminal) -> bool:
    """Whether it has ended; else read on and approve: that counts only once all of a long call was shown."""
    if "completed" not in screen.text:
        screen.press(" ")
        screen.press("y")
    return "completed" in screen.text


@pytest.mark.slow
@pytest.mark.uses("agents", "children")
async def test_the_board_offers_no_editor_for_a_permission(idle: Plans, scene: Scene, environ: dict[str, str]) -> None:
    scene.script([{"ask": "make test", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}], toml=BRIEFLY)
    async with scene.worker():
        plan = await idle.start([code()])
        agent, _ = await asked(plan)
        async with terminal(environ | {"EDITOR": "sed -i s/test/all/", "VISUAL": ""}, "watch", agent.id) as screen:
            await until(lambda: "[y]es" in screen.text, "the question is asked")
            assert "[e]dit" not in screen.text
            screen.press("e")
            await until(lambda: read_and_approved(screen), "it is approved", every=0.5)
        await plan.ended()
    assert scene.chosen() == ["yes"]
