"""What goes along with a call that a worker judges by its policy, and what comes back: no rule, only what they say.

Also the public keys of people and pages, with which signatures are verified.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Part
from plansurvive.plans.usage import Usage

KEY = "ed25519:"
"""What a public key in policy.toml begins with; the base64 of its SubjectPublicKeyInfo follows."""


class People(Part):
    """Part of the facts of a plan whose worker has a policy with keys: who may sign for themselves."""

    feature: ClassVar[str] = "policy"

    people: dict[str, str] = Field(default_factory=dict, description="Public keys of people, hexadecimal.")
    pages: dict[str, str] = Field(default_factory=dict, description="Public keys of web pages, hexadecimal.")


class Origin(Part):
    """Part of the options of a run that an agent or an LLM has begun, by itself or through other plans."""

    feature: ClassVar[str] = "policy"

    origin: Literal["", "llm", "agent"] = Field(default="", description="Who chose what it does; empty: it says so.")


class Decided(Value):
    """A person's decision about exactly this call."""

    by: str = Field(default="", max_length=200)
    time: AwareDatetime


class JudgedCall(Part):
    """Part of a call whose worker has a policy, or one that the policy has asked about."""

    feature: ClassVar[str] = "policy"

    asks: bool = Field(default=False, description="Without a policy, a person would have to approve it first.")
    names: list[str] = Field(default_factory=list, description="What the plan is called: its title, its id.")
    starter: str = Field(default="", max_length=200, description="Who started the plan, as they said.")
    origin: Literal["", "person", "llm", "agent"] = Field(
        default="", description="Who chose the call; empty: not known."
    )
    decided: list[Decided] = Field(default_factory=list, description="What people have decided about it.")
    spent: bool = Field(default=False, description="The plan's budget has no room for another request to an LLM.")


def kept_at(directory: Path, hash: str) -> Path:
    """Where the text of a policy with this SHA-256 is kept in a state directory: audit records have it once."""
    return directory / "policies" / f"{hash}.toml"


JUDGED_STEPS = ("agent", "plan")
"""The tools of such steps."""


class Judgement(Value):
    """What the judge of a rule, an LLM, said of one call."""

    rule: str = Field(max_length=200)
    decide: Literal["allow", "ask"]
    reason: str = Field(default="", max_length=500)
    model: str = Field(default="", max_length=200, description="Empty: it did not answer.")
    request: str = Field(default="", max_length=64, description="SHA-256 of what it was sent.")
    usage: Usage = Field(default_factory=Usage)
    seconds: float = Field(default=0.0, ge=0)


class Ruling(Part):
    """Part of what an attempt returns or leaves: what the policy said of it."""

    feature: ClassVar[str] = "policy"

    decide: Literal["", "allow", "ask", "deny"] = Field(default="", description="Empty: no rule fits.")
    rules: list[str] = Field(default_factory=list, max_length=1_000, description="The rules that decided, by name.")
    hash: str = Field(default="", max_length=64, description="SHA-256 of the policy.toml that they are in.")
    reason: str = Field(default="", max_length=2_000)
    judged: list[Judgement] = Field(
        default_factory=list, max_length=100, description="What the judges of rules said; their `allow` settles theirs."
    )
