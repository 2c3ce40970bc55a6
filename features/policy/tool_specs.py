"""What a worker with a policy says of its tools: their calls are judged when they are made."""

from __future__ import annotations

from collections.abc import Callable

from plansurvive.features.policy.model import JUDGED_STEPS
from plansurvive.features.policy.policy_file import file_of
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings


def described(settings: Settings) -> Callable[[ToolSpec], ToolSpec]:
    """Whoever has a policy asks for nothing by default before it has judged the call; also one that came later."""
    file = file_of(settings)

    def say(spec: ToolSpec) -> ToolSpec:
        is_judged = (not spec.durable or spec.name in JUDGED_STEPS) and file.exists()
        return spec.model_copy(update={"judged": True}) if is_judged else spec

    return say
