"""Whether a step's timer can be set: what a workflow does itself, it must check itself."""

from __future__ import annotations

import math

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from plans.arguments import argument_problems
    from plans.errors import BadReference
    from plans.model import ToolSpec
    from plans.references import Filled


def check_seconds(spec: ToolSpec, filled: Filled) -> None:
    """Raise BadReference INVALID_ARGS unless the arguments are those of a timer."""
    if filled.deferred:
        raise BadReference(f"Invalid args for {spec.name}: the value is too large; pass it in a file", "INVALID_ARGS")
    problems = argument_problems(spec, filled.args)
    if problems:
        text = "; ".join(f"{field}: {sentence}" for field, sentence in problems)
        raise BadReference(f"Invalid args for {spec.name}: {text}", "INVALID_ARGS")
    if not math.isfinite(filled.args.get("seconds", 0)):
        raise BadReference(f"Invalid args for {spec.name}: args.seconds: no finite number", "INVALID_ARGS")
