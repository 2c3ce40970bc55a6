"""`plan review`: the review screen in the terminal or, with --web, the review on the web page. Each is an app."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Annotated

import typer

from plansurvive.client.apps import is_installed, part
from plansurvive.client.cli.terminal import environment, session
from plansurvive.client.cli.terminal.options import Id
from plansurvive.client.ids import plan_id
from plansurvive.client.verbs import runs
from plansurvive.plans.errors import PlanError

Web = Annotated[bool, typer.Option("--web", help="Review on the web page instead.")]


def review(plan: Id, web: Web = False) -> None:
    """Review a plan: edit it, begin it, approve its steps. Full screen, with the keyboard."""
    if web:
        page = part("web", "commands")
        session.run(lambda here: runs.show(here.client, plan))  # report an unknown plan here, not in the browser
        page.review(environment.settings(), plan_id(plan))
        return
    if not _on_a_terminal():
        text = "plan review needs a terminal; use --web, or the commands plan show, plan edit and plan begin"
        raise PlanError(text, "NO_TERMINAL")
    screen = part("review", "screen")
    session.run(lambda here: screen.show(here, plan))


def screen_here() -> ModuleType | None:
    """The review screen, for commands that show it in between; None: there is no terminal, or it is not installed."""
    return part("review", "screen") if _on_a_terminal() and is_installed("review") else None


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
