"""What a worker says of a tool that may have secrets, and what goes along with a call that names some: no values."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part


class SecretUse(Value):
    """How a tool may use a secret that secrets.toml allows it."""

    hosts: list[str] = Field(
        default_factory=list,
        description="Hosts that may receive it, as entries of PLANS_HTTP_ALLOW; none: the tool sends nothing itself.",
    )
    models: bool = Field(
        default=False, description="Whether a model may name it: an agent, or an LLM that writes or repairs a plan."
    )


class SecretsOfTool(Part):
    """Part of a tool's spec."""

    feature: ClassVar[str] = "secrets"

    allowed: dict[str, SecretUse] = Field(
        default_factory=dict, description="Secrets that steps may name in its arguments (secrets.toml), by name."
    )


class NamedSecrets(Part):
    """Part of a call."""

    feature: ClassVar[str] = "secrets"

    places: list[list[str | int]] = Field(default_factory=list, description="Locations in `args` that name secrets.")
    literal: bool = Field(default=False, description="Everything else in these texts stays: they are an agent's.")
