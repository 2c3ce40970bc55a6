"""What goes along with a call that a worker judges by its policy, and what comes back: no rule, only what they say.

Also the public keys of people and pages, with which signatures are verified.
"""

from __future__ import annotations

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


class Spoken(Value):
    """Somebody who has decided, or who is an author of a call, with what proves it."""

    by: str = Field(default="", max_length=200, description="The name, as the message says it.")
    signed: str = Field(default="", max_length=205, description="Whose own key has signed it.")
    verified: bool = Field(default=False, description="Of a page: it vouches for the name as a login.")
    key: str = Field(default="", max_length=64, description="The public key that the signature was good for.")


class Origin(Part):
    """Part of the options of a run that another plan has begun, or that continues another run."""

    feature: ClassVar[str] = "policy"

    origin: Literal["", "llm", "agent"] = Field(default="", description="Who chose what it does; empty: it says so.")
    authors: list[Spoken] = Field(
        default_factory=list, max_length=200, description="Authors of the plan above, or of the run it continues."
    )


class Decided(Spoken):
    """A person's approval of exactly this call."""

    time: AwareDatetime
    digest: str = Field(default="", max_length=64, description="The call that it is about.")
    override: bool = Field(default=False, description="It was meant to be enough alone.")


class Known(Value):
    """A person of the policy."""

    key: str = Field(default="", description="Public key, hexadecimal.")
    logins: list[str] = Field(default_factory=list)


class Delegated(Value):
    """Somebody decides for another one until a time."""

    from_: str = Field(alias="from")
    to: str
    until: AwareDatetime


class Term(Value):
    """Who must approve, by one rule that asks, or by the plan itself."""

    rule: str = Field(description="Its name; empty: the plan itself says so.")
    by: list[str] = Field(default_factory=list, description="The people who may; empty: everybody.")
    count: int = Field(default=1, description="That many different people.")
    not_author: bool = Field(default=False, description="No author of the call counts.")
    expires: int | None = Field(default=None, description="For how many seconds an approval counts.")
    override: list[str] = Field(default_factory=list, description="The people whose override is enough alone.")

    @property
    def title(self) -> str:
        """What says so, in a sentence."""
        return f"rule '{self.rule}'" if self.rule else "the plan itself"

    @property
    def demands(self) -> bool:
        """Whether it matters who approves."""
        return bool(self.by) or self.count > 1 or self.not_author


class Terms(Value):
    """What the rules that ask want, with all that is needed of the policy to say whether they have it."""

    rules: list[Term] = Field(default_factory=list)
    people: dict[str, Known] = Field(default_factory=dict)
    pages: dict[str, str] = Field(default_factory=dict, description="Public keys of pages, hexadecimal.")
    delegations: list[Delegated] = Field(default_factory=list)


class Asked(Value):
    """What is collected for one step until enough people have approved."""

    terms: Terms
    decided: list[Decided] = Field(default_factory=list, max_length=50)


class Consents(Part):
    """Part of a run: the approvals of steps that more than one person, or certain people, must approve."""

    feature: ClassVar[str] = "policy"

    steps: dict[str, Asked] = Field(default_factory=dict)


class JudgedCall(Part):
    """Part of a call whose worker has a policy, or one that the policy has asked about."""

    feature: ClassVar[str] = "policy"

    asks: bool = Field(default=False, description="Without a policy, a person would have to approve it first.")
    names: list[str] = Field(default_factory=list, description="What the plan is called: its title, its id.")
    starter: str = Field(default="", max_length=200, description="Who started the plan, as they said.")
    started: Spoken | None = Field(default=None, description="The same with what proves it; none: nothing does.")
    origin: Literal["", "person", "llm", "agent"] = Field(
        default="", description="Who chose the call; empty: not known."
    )
    decided: list[Decided] = Field(default_factory=list, description="What people have decided about it.")
    authors: list[Spoken] = Field(default_factory=list, description="Who started, wrote or edited the step.")
    wants: list[Term] = Field(
        default_factory=list, description="Whom the plan itself wants to approve it; `by` as it is written there."
    )
    must: bool = Field(default=False, description="The call asks for that reason alone; else only if it asks at all.")
    spent: bool = Field(default=False, description="The plan's budget has no room for another request to an LLM.")


def kept_as(hash: str) -> str:
    """The file in a state directory with the text of the policy that has this SHA-256: audit records have it once."""
    return f"policies/{hash}.toml"


JUDGED_STEPS = ("agent", "plan")
"""Tools whose steps are judged by an activity of the policy, as no activity of their own makes them."""
NO_CALLS = ("ask", "wait_for", "sleep")
"""Tools whose steps make no call: the workflow itself carries them out, and no rule is asked about them."""


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
    terms: Terms | None = Field(default=None, description="Who must approve, where it matters who does.")
    judged: list[Judgement] = Field(
        default_factory=list, max_length=100, description="What the judges of rules said; their `allow` settles theirs."
    )
