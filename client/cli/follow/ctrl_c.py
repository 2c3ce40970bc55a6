"""Ctrl-C in a command that follows a plan: on a terminal it asks what is to become of the plan, elsewhere it leaves it.

The plan itself does not depend on the command. The exit code is 130 whatever is chosen.
"""

from __future__ import annotations

import sys

from client import runs
from client.cli import output, session
from client.cli.session import who
from plans.errors import PlanError

INTERRUPTED = 130
_ANSWERS = {"i": "i", "interrupt": "i", "c": "c", "cancel": "c"}


def after_ctrl_c(plan: str | None) -> int:
    """Ask, do it, and say how to come back; returns the exit code."""
    if plan is None:
        output.say("\nInterrupted; nothing was started.")
        return INTERRUPTED
    choice = _choice() if sys.stdin.isatty() and sys.stderr.isatty() else "l"
    try:
        if choice == "i":
            session.run(lambda here: runs.interrupt(here.client, plan, who()))
            output.say(f"It stops when the running steps have ended.\n  go on with it  plan resume {plan}")
            return INTERRUPTED
        if choice == "c":
            session.run(lambda here: runs.cancel(here.client, plan))
            output.say(f"It is cancelled; running steps are told to end.\n  look at it  plan show {plan}")
            return INTERRUPTED
    except PlanError as error:
        output.show_error(error, as_json=False)
    output.say(
        f"\nThe plan goes on.\n  back to it  plan watch {plan}\n  stop it     plan interrupt {plan}, then plan resume"
        f" {plan}\n  end it      plan cancel {plan}"
    )
    return INTERRUPTED


def _choice() -> str:
    output.say("\nThe plan goes on without this command.  [l]eave it running   [i]nterrupt it   [c]ancel it")
    try:
        answer = input("l/i/c? ").strip().lower()
    except (EOFError, KeyboardInterrupt):
        return "l"
    return _ANSWERS.get(answer, "l")  # a whole line typed for the shell is no answer
