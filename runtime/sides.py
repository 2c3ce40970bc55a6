"""Where the sides of features are: the one place of `runtime` that knows. It names none of them.

The sides are modules of a feature's folder, loaded when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType


def sides(side: str) -> Sequence[ModuleType]:
    """The modules of that side, in the order of the features."""
    found: Sequence[ModuleType] = import_module("plansurvive.features").sides(side)
    return found


def left_out(side: str) -> Sequence[ModuleType]:
    """The modules of that side of the features that are here and that this program leaves out."""
    found: Sequence[ModuleType] = import_module("plansurvive.features").left_out(side)
    return found


def packages() -> Sequence[ModuleType]:
    """The packages of the features: data about them, which import nothing."""
    found: Sequence[ModuleType] = import_module("plansurvive.features").packages()
    return found
