"""The tools this machine knows: the built-in ones, and those of PLANS_TOOLS. A worker elsewhere may know more."""

from __future__ import annotations

from plans.model import ToolSpec
from runtime.settings import Settings


def known_tools(settings: Settings) -> dict[str, ToolSpec]:
    """Their descriptions by name. Raises PlanError when a module of the user's own cannot be used."""
    from activities.tools.registry import load_tools  # every tool with what it needs; most commands need none

    return {name: tool.spec for name, tool in sorted(load_tools(settings.tools).items())}
