"""Starts the program of a coding agent in the sandbox that commands run in.

It may change the workspace as a command may, protected files apart, and its home directory, where it keeps its
sessions; it reads the system's programs and the paths of `read` in agents.toml. It has no network unless agents.toml
grants it, all of it or by way of the proxy of `network`; and of the worker's environment what commands get and `env`
names. `sandbox = "off"` starts it with the rights of the worker's user.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from plansurvive.activities.sandbox.process import Running, begin
from plansurvive.activities.sandbox.sandbox import Network, Sandbox
from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.workspace.effect_log import run_of
from plansurvive.features.coding_agents.agents_file import CodingAgent
from plansurvive.features.coding_agents.network import Proxy
from plansurvive.features.coding_agents.settings import homes_folder
from plansurvive.plans.errors import ToolError
from plansurvive.runtime.home_paths import home_path, program
from plansurvive.runtime.reference import what_it_leads_to
from plansurvive.runtime.settings import Settings

UNAVAILABLE = "AGENT_UNAVAILABLE"
END_SECONDS = 2.0
"""What a program has to end by itself after the end of its input."""


@dataclass(frozen=True)
class Homes:
    """Where agents have their home directories."""

    top: Path
    """Of those without a `home` of their own."""

    def of(self, name: str, agent: CodingAgent) -> str:
        """The home of an agent, made if it is not there. Raises ToolError."""
        place = home_path(agent.home) if agent.home else self.top / name
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise unavailable(name, f"its home {place} cannot be made: {error.strerror}") from None
        return str(place.resolve())


def homes_of(settings: Settings) -> Homes:
    """The homes of a worker's agents."""
    return Homes(homes_folder(settings))


@asynccontextmanager
async def running(
    name: str, agent: CodingAgent, context: ToolContext, homes: Homes, refused: Callable[[str], None]
) -> AsyncIterator[Running]:
    """The program in the workspace of the attempt, as long as the block lasts. `refused` is called with a sentence for
    each host that it may not reach. Raises ToolError AGENT_UNAVAILABLE and the sandbox's.
    """
    root, owner, home = context.workspace.root, run_of(context.call.key), homes.of(name, agent)
    command = [_found(name, agent.command[0]), *agent.command[1:]]
    env = {**_variables(name, agent, os.environ), "HOME": home}
    sandbox, proxy = _sandbox(agent, context.sandbox), None
    _check_network(name, agent, sandbox)
    if agent.hosts:
        proxy = Proxy(agent.hosts, context.addresses, refused)
        command, env = proxy.wrapped(command), {**env, **proxy.variables}
    with context.workspace.directory(".") as directory:
        order = sandbox.confine(
            command, root, root, context.protected, env, network=agent.has_network, owner=owner, writable=(home,)
        )
        context.level = sandbox.level
        async with proxy.serving(sandbox.temporary(root, owner)) if proxy is not None else nullcontext():
            try:
                program = await begin(replace(order, trace=context.trace), directory)
            except OSError as error:
                raise unavailable(name, f"its launcher cannot be started: {error.strerror}", retryable=True) from None
            try:
                yield program
            finally:
                await asyncio.shield(program.end(END_SECONDS))


def unavailable(name: str, problem: str, *, retryable: bool = False) -> ToolError:
    """The error of an agent that cannot be used."""
    return ToolError(UNAVAILABLE, f"the coding agent '{name}' of agents.toml: {problem}", retryable=retryable)


def _check_network(name: str, agent: CodingAgent, sandbox: Sandbox) -> None:
    """Raise ToolError where no way out may be, or where the proxy would not be the only one."""
    if agent.network and sandbox.network == "off" and sandbox.level != "none":
        text = (
            f"agents.toml gives '{name}' a network, and this worker has PLANS_SANDBOX_NETWORK=off; change one of them"
        )
        raise ToolError("NO_NETWORK", text)
    if agent.hosts and sandbox.level != "bwrap" and not sandbox.problem:
        why = f"single hosts in `network` need sandbox level 2 (bubblewrap), and this worker has {sandbox.level}"
        raise unavailable(name, f'{why}; `plan doctor` says how to get it; or write `["*"]` for the whole network')


def _sandbox(agent: CodingAgent, sandbox: Sandbox) -> Sandbox:
    """An agent has the network by agents.toml alone: `PLANS_SANDBOX_NETWORK=on` gives it no more."""
    if agent.sandbox == "off":
        return Sandbox()
    readable = tuple(str(home_path(path)) for path in agent.read)
    network: Network = "off" if sandbox.network == "off" else "step"
    return replace(sandbox, readable=(*sandbox.readable, *readable), network=network)


def _found(name: str, command: str) -> str:
    try:
        return program(command)
    except ValueError as error:
        raise unavailable(name, str(error)) from None


def _variables(name: str, agent: CodingAgent, environ: Mapping[str, str]) -> dict[str, str]:
    try:
        return {variable: what_it_leads_to(value, Path(), environ) for variable, value in agent.env.items()}
    except ValueError as error:
        raise unavailable(name, str(error)) from None
