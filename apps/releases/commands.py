"""`plan worker versions`, `ramp`, `rollback`, `drain`: which version of the workers' code gets new plans.

`plan worker` itself runs a worker; its first argument decides.
"""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any

import typer

from plansurvive.apps.releases.at_versions import AtVersion, all_versions
from plansurvive.apps.releases.control import WHOLE, Drain, ramp, rollback, to_drain
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson
from plansurvive.client.cli.terminal.output import say
from plansurvive.client.cli.terminal.spans import duration
from plansurvive.client.requests.connected import Connected
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import safe
from plansurvive.runtime.setting_groups.versions import PATTERN
from plansurvive.runtime.versions.routing import BadVersion, Routing, names, routing
from plansurvive.runtime.versions.version import UNVERSIONED, Version

app = typer.Typer(
    help="Which version of the workers' code gets new plans.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Given = Annotated[str, typer.Argument(metavar="NAME/BUILD", help="The version, as its worker prints it.")]
Optional = Annotated[str | None, typer.Argument(metavar="[NAME[/BUILD]]", help="The deployment, or one version of it.")]


@app.callback()
def _group() -> None:
    """Which version of the workers' code gets new plans."""


@app.command("versions")
def versions(name: Optional = None, as_json: AsJson = False) -> None:
    """List the versions, the newest first: what gets new plans, and how many plans are at each."""

    async def show(connected: Connected) -> None:
        found = await _standing(connected, await _names(connected, name))
        if as_json:
            output.show_json([_row(each) for each in found])
        else:
            output.show("\n".join(_line(each) for each in found) or "No worker has run with --version yet.")

    session.run(show, worker=False)


@app.command("ramp")
def ramp_(
    version: Given,
    percent: Annotated[float, typer.Argument(min=0, max=100, help="Share of the new plans.")] = WHOLE,
    as_json: AsJson = False,
) -> None:
    """Give a version a share of the new plans. 100, the default, makes it current; NAME/unversioned: none."""

    async def act(connected: Connected) -> None:
        _show(await ramp(connected.client, _version(version), percent), as_json)

    session.run(act, worker=False)


@app.command("rollback")
def rollback_(version: Optional = None, as_json: AsJson = False) -> None:
    """Take back the last release: new plans go where they went before. Plans at it stay with its workers."""

    async def act(connected: Connected) -> None:
        to = _version(version) if version and "/" in version else None
        name = to.name if to else (await _one_name(connected, version))
        queue = connected.settings.task_queue
        taken, where = await rollback(connected.client, queue, name, to)
        if not as_json:
            say(f"{taken.text} gets no new plans any more.")
        _show(where, as_json)

    session.run(act, worker=False)


@app.command("drain")
def drain(
    version: Optional = None,
    move: Annotated[
        bool, typer.Option("--move", help="Move its plans to the current version, if that is newer.")
    ] = False,
    within: Annotated[
        str | None, typer.Option("--within", metavar="TIME", help="Give up after this time: 30s, 10m, 1d.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Wait until no plan is at a version, or at any that gets no new plans: its workers can then be stopped."""
    seconds = duration(within, "--within").total_seconds() if within else None

    async def act(connected: Connected) -> None:
        emptied, moved = [], 0
        try:
            async with asyncio.timeout(seconds):
                for each in await _drained(connected, version):
                    draining = Drain(connected.client, connected.settings.task_queue, each, lambda at: say(_line(at)))
                    if move:
                        moved += await draining.move()
                        _refuse(draining)
                    await draining.wait()
                    emptied.append(each)
        except TimeoutError:
            raise PlanError(
                f"Plans are still there after {within}; `plan worker versions` shows them.", "NOT_DRAINED"
            ) from None
        if as_json:
            output.show_json({"drained": [each.text for each in emptied], "moved": moved})
            return
        output.show(f"Drained: {', '.join(each.text for each in emptied) or 'nothing to drain'}; {moved} moved.")

    session.run(act, worker=False)


def _refuse(draining: Drain) -> None:
    if draining.refused:
        lines = "\n".join(f"- {safe(each)}" for each in draining.refused[:20])
        raise BadVersion(f"{len(draining.refused)} could not be moved:\n{lines}")


async def _drained(connected: Connected, given: str | None) -> list[Version]:
    if given and "/" in given:
        return [_version(given)]
    return to_drain(await routing(connected.client, await _one_name(connected, given)))


async def _names(connected: Connected, given: str | None) -> list[str]:
    return [_checked(given).partition("/")[0]] if given else await names(connected.client)


async def _one_name(connected: Connected, given: str | None) -> str:
    """The deployment that is meant: the one named, that of the settings, or the only one."""
    configured = connected.settings.deployment
    if given or configured:
        return _checked(given or str(configured)).partition("/")[0]
    found = await names(connected.client)
    if len(found) != 1:
        known = f"there are {', '.join(found)}" if found else "no worker has run with --version yet"
        raise BadVersion(f"Name the deployment: {known}.")
    return found[0]


async def _standing(connected: Connected, found: list[str]) -> list[AtVersion]:
    client, queue = connected.client, connected.settings.task_queue
    return [each for name in found for each in await all_versions(client, queue, await routing(client, name))]


def _version(text: str) -> Version:
    name, _, build = _checked(text).partition("/")
    if not build:
        raise BadVersion(f"{text!r} names no build: write NAME/BUILD, as its worker prints it.")
    return Version(name, build)


def _checked(text: str) -> str:
    if not re.fullmatch(PATTERN, text):
        raise BadVersion(
            f"{text[:200]!r} does not name a version: write NAME/BUILD; letters, digits, - and _ (BUILD: also .)."
        )
    return text


def _show(where: Routing, as_json: bool) -> None:
    if as_json:
        ramping = where.ramping.text if where.ramping else None
        output.show_json({"current": where.current.text, "ramping": ramping, "percent": where.percent})
        return
    rest = f", {where.percent:g} % to {where.ramping.text}" if where.ramping else ""
    text = where.current.text if where.current.build != UNVERSIONED else "workers without a version"
    output.show(f"New plans go to {text}{rest}.")


def _row(found: AtVersion) -> dict[str, Any]:
    return {
        "version": found.version.text, "state": found.state, "percent": found.percent, "plans": found.plans,
        "others": found.others, "workers": list(found.workers),
    }  # fmt: skip


def _line(found: AtVersion) -> str:
    share = f", {found.percent:g} % of new plans" if found.percent else ""
    more = f" and {found.others} agents or notifiers" if found.others else ""
    lacking = ": NO WORKER, they wait" if found.is_stuck else ""
    plans = f"{number_of(found.plans, 'plan')}{more} at it, {len(found.workers)} workers{lacking}"
    return f"{found.version.text}  {found.state}{share}; {plans}"
