"""The commands of `plan`: where each one is defined, and the sentence that `plan --help` shows.

A command's module is imported when the command runs (or its own help is asked for), so that `plan --help` and `plan
check` do not wait for the Temporal client, the review screen and everything else that only other commands need. The
sentence stands here for the same reason; a test compares it with the docstring of the function.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run:run", "Start a plan and follow it to its end."),
    "start": ("run:start", "Start a plan and return; it goes on by itself."),
    "make": ("make:make", "Have the LLM write a plan."),
    "check": ("check:check_file", "Tell every problem of a plan file."),
    "list": ("list_plans:list_", "List plans, newest first."),
    "show": ("show:show", "Show a plan: its steps, what they did, the files they made."),
    "watch": ("show:watch", "Follow a plan to its end."),
    "watch-files": ("watch_files:watch_files", "Tell a plan which of its files others change."),
    "files": ("files:files", "Show the files that each step created, changed and deleted."),
    "undo": ("files:undo", "Put back what a plan, or one step, changed in files."),
    "summary": ("show:summary", "Show how a plan ended, or where it stands."),
    "graph": ("show:graph", "Draw a plan as a graph, in Mermaid."),
    "pending": ("show:pending", "List what people are asked for, in all plans."),
    "approve": ("control:approve", "Let a step start that waits for approval, or will."),
    "deny": ("control:deny", "Do not let a step start."),
    "begin": ("control:begin", "Start a plan that waits in review, or let it go on."),
    "review": ("review:review", "Look at a plan, change it, begin it, approve its steps."),
    "edit": ("edit:edit", "Change fields of steps that have not begun, or of the plan."),
    "add": ("edit:add", "Put in a step."),
    "remove": ("edit:remove", "Take a step out that no other depends on."),
    "move": ("edit:move", "Put a step behind another in the list."),
    "skip": ("edit:skip", "Leave a step out."),
    "unskip": ("edit:unskip", "Take a skip back."),
    "regenerate": ("edit:regenerate", "Have the LLM revise what has not begun."),
    "pause": ("control:pause", "Start no further step until `unpause`; what runs goes on."),
    "unpause": ("control:unpause", "Let a paused plan go on."),
    "cancel": ("control:cancel", "End a plan: running steps are told, and clean up."),
    "interrupt": ("resume:interrupt", "Stop a plan at the next safe point."),
    "resume": ("resume:resume", "Go on with an ended plan in a new run."),
    "rerun": ("resume:rerun", "Do steps of an ended plan again in a new run."),
    "agent": ("agent:agent", "Have an LLM with tools work through a request."),
    "history": ("agent:history", "Show the runs of agents on this machine."),
    "tools": ("check:tools", "List the tools that steps may call."),
    "schema": ("check:schema", "Print the JSON Schema of plan files, for editors."),
    "up": ("services:up", "Run server, Temporal UI and worker in the foreground."),
    "down": ("services:down", "Stop the server and worker left running in the background."),
    "doctor": ("services:doctor", "Say what is there and what is missing."),
    "prune": ("prune:prune", "Remove stored values that no plan refers to."),
    "codec": ("codec:codec", "Serve large values to the Temporal UI and CLI."),
    "worker": ("services:worker", "Run the steps of plans until told to stop."),
}
"""By name: module in `client.cli` and function, and the first sentence of its docstring."""
_PASSED_ON: dict[str, Any] = {
    "add_help_option": False,
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
}
"""How `worker` is read: its arguments, `--help` among them, are those of worker.py."""


class Deferred(TyperCommand):
    """A command of which name and sentence are known; the command itself is imported when it is to parse arguments."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the real command."""
        command = imported(str(self.name))
        if parent is not None and callable(parent.obj):
            parent.obj()
        return command.make_context(info_name, args, parent=parent, **extra)


def register(app: typer.Typer) -> None:
    """Give an app all commands, without importing any."""
    for name, (_, sentence) in COMMANDS.items():
        app.command(name, cls=Deferred, help=sentence)(_placeholder)


def imported(name: str) -> Any:
    """The real command of this name, its module imported."""
    module, _, function = COMMANDS[name][0].partition(":")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, **(_PASSED_ON if name == "worker" else {}))(
        getattr(import_module(f"client.cli.{module}"), function)
    )
    return typer.main.get_command(app)


def _placeholder() -> None:
    """Never called: `Deferred` makes the context of the real command."""
