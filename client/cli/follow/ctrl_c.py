"""Ctrl-C while following a plan: on a terminal, asks whether to leave, interrupt or cancel it; otherwise leaves it.

The plan does not depend on the command: left alone, it continues. The exit code is 130 in all cases.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import typer

from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.session import Connected, who
from plansurvive.client.cli.terminal.signals import INTERRUPTED
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Started
from plansurvive.plans.errors import PlanError

T = TypeVar("T")
_ANSWERS = {"i": "i", "interrupt": "i", "c": "c", "cancel": "c"}


def unless_ctrl_c(work: Callable[[Connected], Awaitable[T]], begun: Sequence[Started]) -> T:
    """Run what starts a plan and may follow it, and return its result. `begun` holds the plan once it has started.

    After Ctrl-C, exits with the code of `after_ctrl_c`.
    """
    try:
        return session.run(work, starts=True)
    except KeyboardInterrupt:
        raise typer.Exit(after_ctrl_c(begun[0].plan_id if begun else None)) from None


def after_ctrl_c(plan: str | None) -> int:
    """Ask, act on the answer and print the next commands. Returns the exit code."""
    if plan is None:
        output.say("\nInterrupted. Nothing was started.")
        return INTERRUPTED
    choice = _choice() if sys.stdin.isatty() and sys.stderr.isatty() else "l"
    try:
        if choice == "i":
            session.run(lambda here: runs.interrupt(here.client, plan, who()))
            output.say(f"The plan stops when the running steps have finished.\n  continue  plan resume {plan}")
            return INTERRUPTED
        if choice == "c":
            session.run(lambda here: runs.cancel(here.client, plan))
            output.say(f"Cancelling the plan; running steps clean up first.\n  result  plan show {plan}")
            return INTERRUPTED
    except PlanError as error:
        output.show_error(error, as_json=False)
    output.say(
        f"\nThe plan continues in the background.\n  follow     plan watch {plan}\n"
        f"  interrupt  plan interrupt {plan}, then plan resume {plan}\n  cancel     plan cancel {plan}"
    )
    return INTERRUPTED


def _choice() -> str:
    output.say("\nThe plan continues without this command.  [l]eave it running   [i]nterrupt it   [c]ancel it")
    try:
        answer = input("l/i/c? ").strip().lower()
    except (EOFError, KeyboardInterrupt):
        return "l"
    return _ANSWERS.get(answer, "l")  # a line meant for the shell must not cancel the plan
