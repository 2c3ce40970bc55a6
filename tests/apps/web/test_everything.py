"""Everything a person can do by command can be done on the page, by a route that is named here; or why not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.routing import Route
from typer.core import TyperGroup

from plansurvive.apps.web.app import application
from plansurvive.client.cli.commands import COMMANDS, imported
from plansurvive.runtime.settings import Settings
from tests.apps.web.page_client import service_for

DONE_BY: dict[str, tuple[str, str]] = {
    "run": ("POST", "/start/plan"),
    "start": ("POST", "/start/plan"),
    "make": ("POST", "/start/request"),
    "check": ("POST", "/start/plan"),
    "import": ("POST", "/start/import"),
    "list": ("GET", "/"),
    "begin": ("POST", "/plans/{plan_id}/begin"),
    "review": ("GET", "/plans/{plan_id}/draft"),
    "edit": ("POST", "/plans/{plan_id}/draft/set"),
    "add": ("POST", "/plans/{plan_id}/draft/add"),
    "remove": ("POST", "/plans/{plan_id}/draft/remove"),
    "move": ("POST", "/plans/{plan_id}/draft/move"),
    "skip": ("POST", "/plans/{plan_id}/draft/skip"),
    "unskip": ("POST", "/plans/{plan_id}/draft/unskip"),
    "regenerate": ("POST", "/plans/{plan_id}/regenerate"),
    "resume": ("POST", "/plans/{plan_id}/resume"),
    "rerun": ("POST", "/plans/{plan_id}/rerun"),
    "undo": ("POST", "/plans/{plan_id}/undo"),
    "schedule list": ("GET", "/schedules"),
    "schedule show": ("GET", "/schedules/{name}"),
    "schedule create": ("POST", "/schedules/new"),
    "schedule update": ("POST", "/schedules/{name}/update"),
    "schedule trigger": ("POST", "/schedules/{name}/trigger"),
    "schedule pause": ("POST", "/schedules/{name}/pause"),
    "schedule resume": ("POST", "/schedules/{name}/resume"),
    "schedule backfill": ("POST", "/schedules/{name}/backfill"),
    "schedule delete": ("POST", "/schedules/{name}/delete"),
    "template list": ("GET", "/templates"),
    "template show": ("GET", "/templates/{name}"),
    "template diff": ("GET", "/templates/{name}"),
    "template save": ("POST", "/templates/save"),
    "template run": ("POST", "/start/plan"),
    "template delete": ("POST", "/templates/{name}/delete"),
    "agent": ("POST", "/agents"),
    "history": ("GET", "/agents"),
    "tools": ("GET", "/tools"),
    "limits": ("GET", "/limits"),
    "policy report": ("GET", "/policy"),
    "pending": ("GET", "/inbox"),
    "approve": ("POST", "/plans/{plan_id}/approve"),
    "deny": ("POST", "/plans/{plan_id}/deny"),
    "withdraw": ("POST", "/plans/{plan_id}/withdraw"),
    "answer": ("POST", "/plans/{plan_id}/answer"),
    "event": ("POST", "/plans/{plan_id}/event"),
    "show": ("GET", "/plans/{plan_id}"),
    "watch": ("GET", "/plans/{plan_id}"),
    "summary": ("GET", "/plans/{plan_id}"),
    "graph": ("GET", "/plans/{plan_id}"),
    "logs": ("GET", "/plans/{plan_id}/logs"),
    "files": ("GET", "/plans/{plan_id}/files"),
    "why": ("GET", "/plans/{plan_id}/steps/{step_id:path}"),
    "pause": ("POST", "/plans/{plan_id}/pause"),
    "unpause": ("POST", "/plans/{plan_id}/unpause"),
    "cancel": ("POST", "/plans/{plan_id}/cancel"),
    "interrupt": ("POST", "/plans/{plan_id}/interrupt"),
    "clear-session": ("POST", "/plans/{plan_id}/clear-session"),
}
NOT_THERE = {
    "init": "it makes files of a project in the terminal's directory",
    "demo": "it has a server, a worker and files of its own, and is watched in a terminal",
    "call": "the form of a plan with one step does it; a value alone is for scripts",
    "web": "it is the page",
    "up": "whoever serves the page runs server and worker",
    "down": "it would end the page's own server and worker",
    "worker": "whoever serves the page runs workers",
    "doctor": "it checks the machine of whoever serves the page",
    "audit": "the record is checked where its file and the key are; the page of changes shows who did what",
    "prune": "it removes stored values for everybody, after a question in the terminal",
    "evaluate": "it may ask an LLM hundreds of times, and is for scripts that compare models and prompts",
    "codec": "it serves the Temporal UI, not people",
    "schema": "it is for editors",
    "mcp servers": "the page of tools shows what they offer; only whoever runs the machine may have them asked again",
    "mcp login": "the browser returns to the machine that runs the workers, and the token is kept there",
    "quotas": "a plan that waits for its place says so on its page; the limits are in a file of the machine",
    "notify list": "it shows the settings of the machine that serves the page",
    "notify test": "it tries the settings of the machine that serves the page",
    "keys new": "keys are for whoever runs the machine, and never shown in a browser",
    "keys list": "as above",
    "keys check": "as above",
    "keys read": "as above; the page shows summaries itself",
    "keys person": "as above; who decides on the page is who has logged in",
    "keys page": "as above",
    "secrets list": "secrets.toml is for whoever runs the machine",
    "secrets check": "as above",
    "policy check": "policy.toml is for whoever runs the machine",
    "policy test": "as above",
    "worktrees": "they are on the machine where they were made, and so is git",
    "diff": "as above",
    "watch-files": "it watches the directory of whoever calls it",
}


def commands() -> Iterator[str]:
    """Every command, those of groups with the group's name."""
    for name in COMMANDS:
        found = imported(name)
        if isinstance(found, TyperGroup):
            yield from (f"{name} {each}" for each in found.commands)
        else:
            yield name


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """Methods and paths of the application."""
    home = str(tmp_path_factory.mktemp("home"))
    found = application(service_for(Settings.read({"HOME": home}), None)).routes
    return {(method, each.path) for each in found if isinstance(each, Route) for method in each.methods or ()}


def test_every_command_has_a_route_or_a_reason_why_not() -> None:
    assert set(commands()) == DONE_BY.keys() | NOT_THERE.keys()
    assert not DONE_BY.keys() & NOT_THERE.keys()


@pytest.mark.parametrize("command", DONE_BY)
def test_the_page_has_the_route_that_does_what_a_command_does(command: str, routes: set[tuple[str, str]]) -> None:
    assert DONE_BY[command] in routes
