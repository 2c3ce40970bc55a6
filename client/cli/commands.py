"""The command table of `plan`: where each command is defined, and its sentence in `plan --help`.

A command's module is imported only when the command runs or shows its own help, so that `plan --help` and `plan check`
do not load the Temporal client, the review screen and other slow imports. The sentence is repeated here for the same
reason; a test compares it with the docstring of the function.

Importing all commands to read their docstrings took 0.7 s before every command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from plansurvive.client.apps import Command, command_of_others, commands_of_apps, listed_of_apps
from plansurvive.client.cli.terminal.usage import Parsed
from plansurvive.client.feature import commands_of_features, listed_of_features

OF_CORE: dict[str, tuple[str, str]] = {
    "init": ("init:init", "Make a project: a first plan, a tool and its test."),
    "run": ("run:run", "Start a plan and follow it to its end."),
    "start": ("run:start", "Start a plan and return; it runs in the background."),
    "call": ("call:call", "Call a tool once, as a plan of one step."),
    "check": ("check:check_file", "Report every problem of a plan file."),
    "list": ("list_plans:list_", "List plans, those that have not ended first."),
    "show": ("show:show", "Show a plan: its steps, results and files."),
    "watch": ("show:watch", "Follow a plan to its end."),
    "watch-files": ("watch_files:watch_files", "Report files that others change to a plan."),
    "summary": ("show:summary", "Show how a plan ended, or its current state."),
    "graph": ("show:graph", "Draw a plan as a graph, in Mermaid."),
    "pending": ("show:pending", "List the decisions that plans await."),
    "approve": ("control:approve", "Approve a step, now or before it awaits approval."),
    "deny": ("control:deny", "Deny a step: it is skipped, and its dependents are blocked."),
    "begin": ("control:begin", "End the review of a plan: it starts, or continues."),
    "review": ("review:review", "Review a plan: edit it, begin it, approve its steps."),
    "pause": ("control:pause", "Pause a plan; running steps continue."),
    "unpause": ("control:unpause", "Continue a paused plan."),
    "clear-session": (
        "control:clear_session",
        "Forget which files and agents.md a plan has seen.",
    ),
    "cancel": ("control:cancel", "Cancel a plan; running steps clean up first."),
    "interrupt": ("resume:interrupt", "Stop a plan so that it can be resumed."),
    "resume": ("resume:resume", "Continue an ended plan in a new run."),
    "rerun": ("resume:rerun", "Run steps of an ended plan again, in a new run."),
    "tools": ("check:tools", "List the tools that steps may call."),
    "schema": ("check:schema", "Print the JSON Schema of plan files, for editors."),
    "up": ("services:up", "Run server, UI, worker and web page in the foreground."),
    "down": ("services:down", "Stop the server and the worker in the background."),
    "doctor": ("services:doctor", "Check this machine: what is installed and what is missing."),
    "worker": ("services:worker", "Run the steps of plans until stopped."),
}
"""Command name -> (`module:function` in `client.cli`, first sentence of the function's docstring).

Instead of a function, a `typer.Typer` is a group of commands; the sentence is that of its help.
"""
COMMANDS = {name: Command(f"plansurvive.client.cli.{place}", text) for name, (place, text) in OF_CORE.items()}
COMMANDS |= {name: Command(place, text) for name, (place, text) in commands_of_features().items() if " " not in name}
COMMANDS |= commands_of_apps()
"""The same of the core, of all features and of our apps, with whole names of modules."""
GROUPS: dict[str, tuple[str, ...]] = {
    "Run": ("run", "start", "check", "call", "tools", "schema"),
    "Decide": ("pending", "approve", "deny", "review", "begin"),
    "Look": ("list", "show", "watch", "summary", "graph"),
    "Change": ("pause", "unpause", "watch-files", "clear-session", "interrupt", "cancel"),
    "After the end": ("resume", "rerun"),
}
"""The groups of `plan --help`, in the order in which a plan lives, with the commands of the core. Features and apps say
where theirs are; a command that is in none of them is in the last."""
LAST_GROUP = "Set up"
EXAMPLES = {
    "plan run FILE": "start a plan and follow it",
    "plan check FILE": "report its problems, and what it will ask",
    "plan pending": "list what awaits you, in all plans",
    "plan approve ID STEP": "let a step start",
    "plan show ID STEP": "show one step, or what is inside a loop",
    "plan why ID STEP": "say why it waits, failed or was skipped",
    "plan resume ID": "continue a plan that ended early",
}
ALIASES = {"replay": "evaluate"}
"""Earlier names of commands, which still work and are not listed."""
ELSEWHERE = {
    "status": "`plan show ID` shows one plan, `plan list` all of them",
    "get": "`plan show ID` shows one plan, `plan list` all of them",
    "describe": "`plan show ID` shows a plan, `plan show ID STEP` one step",
    "ps": "`plan list --running` lists the plans that run",
    "ls": "`plan list` lists the plans",
    "delete": "`plan cancel ID` ends a plan; the server deletes ended ones after its retention time, and `plan prune` "
              "removes the values that no plan refers to",
    "rm": "`plan cancel ID` ends a plan; `plan remove ID STEP` removes a step",
    "stop": "`plan cancel ID` ends a plan, `plan pause ID` pauses it, `plan interrupt ID` ends it to be resumed; "
            "`plan down` stops server and worker",
    "kill": "`plan cancel ID` ends a plan; running steps clean up first",
    "retry": "`plan resume ID` runs what failed again, `plan rerun ID --from STEP` a step and what depends on it",
    "validate": "`plan check FILE` reports every problem of a plan file",
    "apply": "`plan run FILE` starts a plan",
    "exec": "`plan run FILE` starts a plan, `plan call TOOL` calls a tool once",
    "execute": "`plan run FILE` starts a plan, `plan call TOOL` calls a tool once",
    "create": "`plan init` makes a project, `plan run FILE` starts a plan, `plan schedule create` schedules one",
    "new": "`plan init` makes a project with a first plan, `plan make` has the LLM write a plan",
    "restart": "`plan resume ID` runs what failed again, `plan rerun ID --from STEP` a step and what depends on it",
    "lint": "`plan check FILE` reports every problem of a plan file",
    "test": "`plan check FILE` reports its problems, `plan run FILE --dry-run` what it would do",
    "dry-run": "`plan run FILE --dry-run` shows what a plan would do",
    "label": "labels are a field of the plan, `labels: {customer: acme}`; `plan list --label customer` finds them",
    "open": "`plan web` serves the web page, `plan review ID` opens a plan",
    "ui": "`plan web` serves the web page, `plan doctor` names the address of the Temporal UI",
    "dashboard": "`plan web` serves the web page, `plan list` lists the plans",
    "server": "`plan up` runs server, worker and web page, `plan down` stops them, `plan doctor` names the server",
    "config": "settings are variables of the environment; `plan doctor` shows which are in force",
    "login": "nothing on this machine needs one; TEMPORAL_ADDRESS and TEMPORAL_API_KEY name a server and its key",
    "version": "`plan --version` prints it",
    "merge": "the tool `merge_worktrees`, as a step, merges worktrees; `plan diff ID STEP` shows the changes of one",
    "rollback": "`plan undo ID` takes back what a plan has changed; with `rollback: true` a plan does it when it fails",
    "abort": "`plan cancel ID` ends a plan; running steps clean up first",
    "reject": "`plan deny ID STEP` denies a step",
    "accept": "`plan approve ID STEP` approves a step",
    "submit": "`plan start FILE` starts a plan and returns",
    "continue": "`plan unpause ID` continues a paused plan, `plan resume ID` an ended one",
    "wait": "`plan watch ID` follows a plan to its end",
    "tail": "`plan watch ID` follows a plan, `plan logs ID STEP` shows what a step writes",
    "inspect": "`plan show ID` shows a plan, `plan show ID STEP` one step",
    "explain": "`plan why ID STEP` says why a step waits, failed or was skipped",
    "help": "`plan --help` lists the commands, `plan COMMAND --help` shows one",
}  # fmt: skip
"""Names that other programs have for what a command of ours does, and the answer to each."""
_PASSED_ON: dict[str, Any] = {
    "add_help_option": False,
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
}
"""`worker` passes all its arguments, `--help` included, to worker.py."""


class Deferred(TyperCommand):
    """A command known by name and sentence; its module is imported when it has to parse arguments."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the real command and return its context."""
        command = imported(str(self.name))
        if parent is not None and callable(parent.obj):
            parent.obj()
        return command.make_context(info_name, args, parent=parent, **extra)

    def get_short_help_str(self, limit: int = 45) -> str:
        """The sentence; of a command that cannot run, what to install."""
        missing = COMMANDS[str(self.name)].missing if self.name in COMMANDS else ""
        return f"Not installed: {missing}." if missing else super().get_short_help_str(limit)


class Commands(TyperGroup):
    """All commands; one of another distribution is looked for once its name is called."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        own = super().get_command(ctx, ALIASES.get(cmd_name, cmd_name))
        if own is not None or cmd_name.startswith("-"):
            return own
        found = command_of_others(cmd_name)
        return None if found is None else _imported(cmd_name, found)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was called. A usage error names those that do what another program's command does."""
        if args and args[0] in ELSEWHERE and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command '{args[0]}': {ELSEWHERE[args[0]]}.")
        if args and args[0].endswith((".yaml", ".yml", ".json")) and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command '{args[0]}': `plan run {shlex.quote(args[0])}` runs that file.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in groups, and the examples after them."""
        width = max(map(len, self.commands))
        for title, names in groups(self.list_commands(ctx)).items():
            known = [(name, self.commands[name]) for name in names if name in self.commands]
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (f"{name:{width}}", command.get_short_help_str(formatter.width - 6 - width))
                        for name, command in known
                    ]
                )
        with formatter.section("Examples"):
            formatter.write_dl(list(EXAMPLES.items()))


def groups(commands: Iterable[str]) -> dict[str, list[str]]:
    """The commands by their group in `plan --help`, each behind the one that it stands behind."""
    found = {title: list(names) for title, names in GROUPS.items()}
    left = {**listed_of_features(), **listed_of_apps()}
    while left:
        # Where what it stands behind is not there, as its feature is left out, a command is the last of its group.
        name = next((each for each, (title, behind) in left.items() if behind in found[title]), next(iter(left)))
        title, behind = left.pop(name)
        names = found[title]
        names.insert(names.index(behind) + 1 if behind in names else len(names), name)
    grouped = {name for names in found.values() for name in names}
    return {**found, LAST_GROUP: [name for name in commands if name not in grouped]}


def register(app: typer.Typer) -> None:
    """Register all commands with an app, without importing their modules."""
    for name, command in COMMANDS.items():
        app.command(name, cls=Deferred, help=command.sentence)(_placeholder)


def imported(name: str) -> Any:
    """Import the module of a command and return the real command; of a group, the group with its commands.

    Raises AppMissing.
    """
    return _imported(name, COMMANDS[name])


def _imported(name: str, command: Command) -> Any:
    if command.missing:
        from plansurvive.client.errors import AppMissing

        raise AppMissing(f"`plan {name}` is not installed; run: {command.missing}")
    module, _, function = command.target.partition(":")
    found = getattr(import_module(module), function)
    if isinstance(found, typer.Typer):
        _parse_all(found)
        group = typer.main.get_command(found)
        group.name = name
        return group
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, cls=Parsed, **(_PASSED_ON if name == "worker" else {}))(found)
    return typer.main.get_command(app)


def _parse_all(group: typer.Typer) -> None:
    """Have every command of a group, and of the groups in it, parsed as a single one is."""
    for each in group.registered_commands:
        each.cls = Parsed if each.cls in (None, TyperCommand) else each.cls
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            _parse_all(inner.typer_instance)


def add_commands_of_features(app: typer.Typer, group: str) -> None:
    """Add the commands to a group that features have in it. Imports their modules."""
    for name, (place, _) in commands_of_features().items():
        if name.startswith(f"{group} "):
            module, _, function = place.partition(":")
            app.command(name.removeprefix(f"{group} "))(getattr(import_module(module), function))


def _placeholder() -> None:
    """Never called: `Deferred` replaces it with the real command."""
