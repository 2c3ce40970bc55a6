"""The row of `plan doctor` about agents.toml."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from plansurvive.activities.attempt.environment import sandbox_of
from plansurvive.client.doctor import Finding, Verdict
from plansurvive.features.coding_agents.agents_file import FILE, CodingAgent, read_agents
from plansurvive.runtime.base import extras
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.settings import SettingError, Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """The agents, and what they lack here, or what is wrong with the file; nothing without one."""
    try:
        known = read_agents(settings)
    except SettingError as error:
        return [Finding(subject="coding agents", verdict=Verdict.BAD, text=error.message)]
    lacking = [text for name, agent in known.items() for text in _lacks(name, agent, environ)]
    if (enclosed := [name for name, agent in known.items() if agent.hosts]) and sandbox_of(settings).level != "bwrap":
        lacking.append(f"{', '.join(enclosed)}: single hosts in `network` need sandbox level 2, bubblewrap")
    if known and (line := extras.lacking("acp")):
        lacking.append(f"its library is not installed; run: {line}")
    if lacking:
        return [Finding(subject="coding agents", verdict=Verdict.WARNING, text=f"{FILE}: {'; '.join(lacking)}")]
    text = f"{FILE}: {', '.join(known)}"
    return [Finding(subject="coding agents", verdict=Verdict.GOOD, text=text)] if known else []


def _lacks(name: str, agent: CodingAgent, environ: Mapping[str, str]) -> Iterator[str]:
    program = str(home_path(agent.command[0])) if "/" in agent.command[0] else shutil.which(agent.command[0])
    if program is None or not os.access(program, os.X_OK):
        yield f"{name}: there is no program `{agent.command[0]}`; install it, or name its whole path"
    for reference in agent.env.values():
        if not environ.get(reference.removeprefix("env:")):
            yield f"{name}: the variable {reference.removeprefix('env:')} is not set; set it for the worker"
