"""The row of `plan doctor` about agents.toml."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping

from plansurvive.activities.attempt.environment import sandbox_of
from plansurvive.client.doctor import Finding, about
from plansurvive.features.coding_agents.agents_file import FILE, CodingAgent, read_agents
from plansurvive.runtime.base import extras
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.settings import Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """The agents, and what they lack here, or what is wrong with the file; nothing without one."""

    def look() -> tuple[str, str]:
        known = read_agents(settings)
        lacking = [text for name, agent in known.items() for text in _lacks(name, agent, environ)]
        enclosed = [name for name, agent in known.items() if agent.hosts]
        if enclosed and sandbox_of(settings).level != "bwrap":
            lacking.append(f"{', '.join(enclosed)}: single hosts in `network` need sandbox level 2, bubblewrap")
        if known and (line := extras.lacking("acp")):
            lacking.append(f"its library is not installed; run: {line}")
        there = f"{FILE}: {', '.join(known)}" if known else ""
        return there, f"{FILE}: {'; '.join(lacking)}" if lacking else ""

    return about("coding agents", look)


def _lacks(name: str, agent: CodingAgent, environ: Mapping[str, str]) -> Iterator[str]:
    program = str(home_path(agent.command[0])) if "/" in agent.command[0] else shutil.which(agent.command[0])
    if program is None or not os.access(program, os.X_OK):
        yield f"{name}: there is no program `{agent.command[0]}`; install it, or name its whole path"
    for reference in agent.env.values():
        if not environ.get(reference.removeprefix("env:")):
            yield f"{name}: the variable {reference.removeprefix('env:')} is not set; set it for the worker"
