"""Rules of a plan for its steps: retries, approvals, budget, defaults, and the plan's typed inputs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from plansurvive.plans.model.notify import Span
from plansurvive.plans.model.values import Seconds, Value


class Retry(Value):
    """Attempts of a step, and the delays between them: `delay`, then `delay * factor`, ... (seed 004: 1 s, 2 s)."""

    attempts: int = Field(
        default=3,
        ge=1,
        le=100,
        strict=True,
        description="Attempts in total, the first included; default 3. Only errors of the tool count, not the "
        "death of a worker.",
    )
    delay: float = Field(
        default=1.0, ge=0, le=86_400, strict=True, description="Seconds before the second attempt; default 1."
    )
    factor: float = Field(
        default=2.0, ge=1, le=100, strict=True, description="Each further delay is longer by this factor; default 2."
    )


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class ApprovalRule(Value):
    """Who must approve, the time limit of that, and what happens when it expires."""

    by: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        BeforeValidator(_listed),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
    ] = Field(
        default_factory=list, max_length=50,
        description="The people who may approve, and groups as `group:release`, of the workers' policy.toml; or one.",
    )  # fmt: skip
    count: int = Field(default=1, ge=1, le=20, strict=True, description="That many different people must approve.")
    not_author: bool = Field(default=False, strict=True, description="None of them has started or edited the plan.")
    expires: Span | None = Field(
        default=None, description="How long an approval counts for a call that has not begun: seconds, or `4h`."
    )
    timeout: Seconds | None = Field(default=None, description="Seconds to await a decision; unlimited if omitted.")
    on_timeout: Literal["deny", "approve", "fail"] = Field(
        default="deny", description="What happens then: `deny` (default), `approve`, or `fail`."
    )

    @property
    def names_people(self) -> bool:
        """Whether it matters who approves."""
        return bool(self.by) or self.count > 1 or self.not_author


class Input(Value):
    """A typed parameter of a plan: set with `--input name=value`, used as `{{inputs.name}}` or `$inputs.name`."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"] = Field(
        default="string", description="`string` (default), `integer`, `number`, `boolean`, `array` or `object`."
    )
    description: str = Field(default="", max_length=10_000, description="What the value is for.")
    default: Any = Field(
        default=None, description="The value if none is given; an input without a default is required."
    )


class Budget(Value):
    """Limits on what a run may spend on LLM requests; a field that is not set means no limit."""

    tokens: int | None = Field(default=None, ge=1, strict=True, description="Tokens in total.")
    calls: int | None = Field(default=50, ge=1, strict=True, description="Requests in total; default 50.")
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Time spent on them.")
    cost: float | None = Field(
        default=None, gt=0, allow_inf_nan=False,
        description="What [coding agents](coding-agents.md) say that their work costs, in each currency.",
    )  # fmt: skip
    warn_at: float = Field(
        default=0.8, gt=0, le=1, description="Fraction of a limit at which a log entry warns; default 0.8."
    )
    ask: bool = Field(
        default=True,
        description="True (default): at a limit, a person is asked to extend it by half; false: what needs a request "
        "fails with `LLM_BUDGET`.",
    )


OnFailure = Literal["block", "ask_llm", "stop"]
"""What follows from a step's last failure: its dependents are blocked, the LLM may recover it, or the plan stops."""


class Defaults(Value):
    """Defaults for the steps that do not set a field themselves."""

    retry: Retry | None = Field(default=None, description="Attempts and delays.")
    timeout: Seconds | None = Field(default=None, description="Seconds one attempt may take.")
    critical: bool = Field(default=False, strict=True, description="Every step without `critical: false` is critical.")
    approval: ApprovalRule | None = Field(
        default=None, description="Who approves what asks, and the time limit of that."
    )
    on_failure: OnFailure = Field(default="block", description="What follows when a step's attempts are used up.")
    approve_recovery: bool = Field(
        default=False, strict=True, description="True: a person approves each recovery that the LLM proposes."
    )
