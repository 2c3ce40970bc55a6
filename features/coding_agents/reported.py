"""What the coding agents of a machine have said of their spending so far: a budget holds an agent by that alone.

The protocol does not say beforehand what an agent reports. A turn notes what it has seen, beside the agent's home and
out of its reach; `plan check` reads it. What another program has said counts no longer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from plansurvive.features.coding_agents.settings import homes_folder
from plansurvive.plans.model import Value
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.settings import Settings


class Reported(Value):
    """What one agent has reported in all its turns."""

    command: list[str] = Field(description="The program that did.")
    tokens: Literal["", "at its end", "within a turn"] = Field(default="", description="When; empty: never.")
    cost: bool = Field(default=False, description="Costs are reported within a turn, or never.")


def reported(name: str, command: list[str], settings: Settings) -> Reported | None:
    """What the agent has reported; None: it has not worked here with this command, as far as is known."""
    try:
        found = Reported.model_validate_json(_file(name, settings).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.command == command else None


def note(name: str, seen: Reported, settings: Settings) -> None:
    """Add what a turn has seen. One that cannot be written is left out: it is for warnings."""
    known = reported(name, seen.command, settings)
    if known is not None:
        tokens = max((known.tokens, seen.tokens), key=("", "at its end", "within a turn").index)
        seen = seen.model_copy(update={"tokens": tokens, "cost": known.cost or seen.cost})
    if seen != known:
        file = _file(name, settings)
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(file, seen.model_dump_json().encode(), durable=False)
        except OSError:
            return


def _file(name: str, settings: Settings) -> Path:
    return homes_folder(settings) / f"{name}.json"
