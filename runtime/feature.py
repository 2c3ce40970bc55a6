"""The seams of what processes of ours run on: worker, commands, page. What a feature puts between them and the world.

The sides are modules of a feature's folder, loaded when they are asked for. This is the one place of `runtime` that
knows where they are; it names none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `plan --help` loads neither
    from plansurvive.runtime.sealing import Sealing
    from plansurvive.runtime.settings import Settings


def sides(side: str) -> Sequence[ModuleType]:
    """The modules of that side, in the order of the features."""
    found: Sequence[ModuleType] = import_module("plansurvive.features").sides(side)
    return found


def sealing_of(settings: Settings) -> Sealing:
    """How a process with these settings encrypts: as the first feature says that does. Raises SettingError."""
    from plansurvive.runtime.sealing import UNSEALED

    return next((side.sealing(settings) for side in sides("sealing")), UNSEALED)
