"""`plan review`: the review screen in the terminal or, with --web, the review on the web page."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from client import runs
from client.cli import environment, session
from client.cli.options import Id
from client.cli.session import Connected, who
from client.ids import plan_id
from client.local_tools import tools_of
from client.requests.llm import require_llm_of
from plans.errors import PlanError

Web = Annotated[bool, typer.Option("--web", help="Review on the web page instead.")]


def review(plan: Id, web: Web = False) -> None:
    """Review a plan: edit it, begin it, approve its steps. Full screen, with the keyboard."""
    if web:
        session.run(lambda here: runs.show(here.client, plan))  # report an unknown plan here, not in the browser
        from client.cli.web.command import review as review_on_page

        review_on_page(environment.settings(), plan_id(plan))
        return
    if not on_a_screen():
        text = "plan review needs a terminal; use --web, or the commands plan show, plan edit and plan begin"
        raise PlanError(text, "NO_TERMINAL")
    session.run(lambda here: show(here, plan))


def on_a_screen() -> bool:
    """Whether the review screen can be shown."""
    return sys.stdin.isatty() and sys.stdout.isatty()


async def show(here: Connected, plan: str, *, until_begun: bool = False) -> bool:
    """Show the screen until the user leaves it. Returns whether the plan left review. Raises PlanNotFound, NoWorker."""
    from client.review.app import ReviewApp  # slow to import, and most commands do not need it

    view = await runs.show(here.client, plan)
    tools = await tools_of(here.client, plan, here.settings)
    app = ReviewApp(here.client, plan_id(plan), who(), tools, view)
    app.leaves_on_begin = until_begun
    app.llm_check = lambda: require_llm_of(here.client, plan, here.settings, own_worker=here.keeps_worker)
    left = await app.run_async(mouse=False)
    if app.failure:
        raise app.failure
    return left == "begun" or app.view.status not in ("draft", "review")
