"""What a machine says of the tool `coding_agent`: which agents ask before they begin."""

from __future__ import annotations

from collections.abc import Callable

from plansurvive.features.coding_agents.agents_file import read_agents
from plansurvive.features.coding_agents.model import TOOL
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings


def described(settings: Settings) -> Callable[[ToolSpec], ToolSpec]:
    """Those of agents.toml with `approve = "never"` begin unasked. Raises SettingError."""
    free = [name for name, agent in read_agents(settings).items() if agent.approve == "never"]

    def say(spec: ToolSpec) -> ToolSpec:
        return spec if spec.name != TOOL or not free else spec.model_copy(update={"approval_exempt": {"agent": free}})

    return say
