"""Shows the review screen of a plan in this terminal, until the user leaves it."""

from __future__ import annotations

from plansurvive.apps.review.app import ReviewApp
from plansurvive.apps.review.around import Around
from plansurvive.client import runs
from plansurvive.client.cli.terminal.asking import compared
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.feature import read_run
from plansurvive.client.ids import plan_id
from plansurvive.client.local_tools import known_tools, tools_of
from plansurvive.client.requests.llm import require_llm_of
from plansurvive.client.rpc import ask, describe
from plansurvive.plans.run import ENDED
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.models.card import Card


async def show(here: Connected, plan: str, *, until_begun: bool = False) -> bool:
    """Show the screen until the user leaves it. Returns whether the plan left review. Raises PlanNotFound, NoWorker."""
    view = await runs.show(here.client, plan)
    tools = await tools_of(here.client, plan, here.settings)
    app = ReviewApp(here.client, plan_id(plan), author(), tools, view)
    app.leaves_on_begin = until_begun
    app.llm_check = lambda: require_llm_of(here.client, plan, here.settings, own_worker=here.keeps_worker)
    app.look = lambda view, before: _around(here, plan_id(plan), view, before)
    app.compare = lambda item: _compared(here, plan_id(plan), item)
    left = await app.run_async(mouse=False)
    if app.failure:
        raise app.failure
    return left == "begun" or app.view.status not in ("draft", "review")


async def _compared(here: Connected, plan: str, card: Card) -> Card:
    """A call with other arguments, with what it would change in a file here."""
    return await compared(here, card, (await describe(here.client, plan)).task_queue)


async def _around(here: Connected, plan: str, view: PlanView, before: Around) -> Around:
    """What pending calls would change in files here, and which steps will ask; the latter once for each version."""
    from plansurvive.client.requests.asking import asking_of  # slow to import, and not needed for the first picture

    queue = (await describe(here.client, plan)).task_queue if view.pending else None
    found = {item.step_id: (await compared(here, item, queue)).change for item in view.pending}
    asking = before.asking
    if asking is None and view.status not in (*ENDED, "draft"):
        state = await ask(here.client, plan, "state")
        if "order" in state:
            return Around(found)  # an agent chooses its calls as it works
        run = read_run(state)
        tools = known_tools(here.settings) | run.facts.tools
        asking = {each.step_id: each.reason for each in asking_of(run, tools, here.settings)}
    return Around(found, asking)
