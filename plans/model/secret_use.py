"""What a worker lets one of its tools do with a secret: recorded with the tool, without the secret's value."""

from __future__ import annotations

from pydantic import Field

from plansurvive.plans.model.values import Value


class SecretUse(Value):
    """How a tool may use a secret that secrets.toml allows it."""

    hosts: list[str] = Field(
        default_factory=list,
        description="Hosts that may receive it, as entries of PLANS_HTTP_ALLOW; none: the tool sends nothing itself.",
    )
    models: bool = Field(
        default=False, description="Whether a model may name it: an agent, or an LLM that writes or repairs a plan."
    )
