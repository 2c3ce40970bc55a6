"""What some install: a folder for each app, which uses `client`, the features and the core, and no other app.

The base works without any of them: whoever asks for a part of an app asks `client/apps.py`, which says what to install
where it is missing. Packages of others add commands as the entry points `plans.commands`, and pages of the web page as
`plans.pages`. Ours stand in this module, which imports nothing: to read the entry points of all distributions takes
longer than the rest of `plan --help`.

Sides of an app that the client asks for are its modules of these names, as far as it has them:

- `pages`: what it adds to the web page (`client/page/pages.py`)
- `doctor`: `findings(settings, environ)`, what `plan doctor` says of this machine
- `doctor_of_server`: `findings(settings, connection)`, asynchronous, of the server and its workers
"""

from __future__ import annotations

EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "importers": ("", ()),
    "codec": ("", ()),
    "evaluation": ("", ()),
    "releases": ("", ()),
    "schedules": ("", ()),
    "review": ("review", ("textual",)),
    "mcp": ("mcp", ("mcp",)),
    "web": ("web", ("itsdangerous", "jinja2", "joserfc", "python_multipart", "starlette", "uvicorn")),
    "service": ("", ()),
    "demo": ("", ()),
}
"""App -> (extra of the distribution, import names of what the extra installs for it)."""
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo.commands:demo", "Watch a plan survive the death of its worker."),
    "import": ("importers.commands:import_", "Make a plan of another system's workflow file."),
    "evaluate": ("evaluation.commands:evaluate", "Evaluate recorded runs with another model or prompt."),
    "schedule": ("schedules.commands.group:app", "Run plans at set times, on Temporal Schedules."),
    "mcp": ("mcp.commands:app", "Serve plans to agents over MCP, on standard input/output."),
    "web": ("web.commands:web", "Serve the web page: plans, decisions, drafts."),
    "codec": ("codec.commands:codec", "Serve large values to the Temporal UI and CLI."),
}
"""Command -> (`module:function` in this package, first sentence of its docstring)."""
LISTED = {"import": ("Run", "make"), "schedule": ("Run", "template"), "evaluate": ("After the end", "undo")}
"""Command -> (its group in `plan --help`, the command that it stands behind); others are in the last group."""
