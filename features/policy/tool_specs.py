"""What a worker with a policy says of its tools: their calls are judged when they are made."""

from __future__ import annotations

from collections.abc import Callable

from plansurvive.features.policy.policy_file import file_of
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings


def described(settings: Settings) -> Callable[[ToolSpec], ToolSpec]:
    """Whoever has a policy asks for nothing by default before it has judged the call."""
    has_one = file_of(settings).exists()

    def say(spec: ToolSpec) -> ToolSpec:
        return spec if not has_one or spec.durable else spec.model_copy(update={"judged": True})

    return say
