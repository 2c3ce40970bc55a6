"""One entry of an audit record: an act of a person, a program or the plan, with digests instead of values.

A record is made of what Temporal's history holds, which cannot be changed through the server's API. It never contains
an argument, a value, a comment or an answer: `digest` is of the call that a person was shown, `args` of the arguments
that a tool was called with, `message` of everything that a person sent.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from plansurvive.plans.model import Value
from plansurvive.plans.run.step_call import digest_of_data

NAME = 200
"""Characters of names that others chose."""


class Signed(Value):
    """The signature of a message, and what it covers beside the message itself."""

    kind: str = Field(max_length=20)
    nonce: str = Field(default="", max_length=100, description="Of the plan's run; empty for a start.")
    previous: str = Field(default="", max_length=100, description="The nonce before, which counts as well.")
    workflow: str = Field(default="", max_length=1_000, description="Signed for; of a schedule without the time.")
    id: str = Field(pattern=r"^[0-9a-f]{32}$")
    time: int = Field(ge=0)
    value: str = Field(pattern=r"^[0-9a-f]{128}$")
    by: str = Field(default="", max_length=NAME, description="Whose own key it names; empty: the state directory's.")


class Want(Value):
    """Whom a plan itself wants to approve a call."""

    by: list[str] = Field(default_factory=list, max_length=200, description="People and groups of the policy.")
    count: int = Field(default=1, ge=1)
    not_author: bool = False
    expires: int | None = Field(default=None, description="For how many seconds an approval counts.")


class Act(Value):
    """One entry, before it is part of a record."""

    time: datetime = Field(description="When the server took it.")
    action: str = Field(max_length=NAME, description="started, decide, edit, step started, step ended, cancelled ...")
    by: str = Field(default="", max_length=NAME, description="The name in the message; `signed` says whether to trust.")
    via: str = Field(default="", max_length=NAME, description="Where a person spoke: web, link, mcp; empty: command.")
    verified: bool = Field(default=False, description="The message says that a login vouches for the name.")
    client: str = Field(default="", max_length=NAME, description="The process that the server took it from.")
    step_id: str = Field(default="", max_length=1_000)
    tool: str = Field(default="", max_length=NAME)
    version: int | None = Field(default=None, description="The plan's version that the message is about, or made.")
    digest: str = Field(default="", max_length=64, description="The call that was shown to the person who decided.")
    args: str = Field(default="", max_length=64, description="SHA-256 of the arguments.")
    message: str = Field(default="", max_length=64, description="SHA-256 of the whole message, or of a plan's start.")
    outcome: str = Field(default="", max_length=NAME, description="accepted, refused, sent, completed, failed ...")
    code: str = Field(default="", max_length=NAME, description="Error code.")
    text: str = Field(default="", max_length=NAME, description="Why a signal was refused, or became void.")
    entry: int | None = Field(default=None, ge=1, description="Number of the entry of the signal that this is about.")
    attempt: int = Field(default=0, description="Attempts that a call took.")
    decide: str = Field(default="", max_length=NAME, description="What the policy said of a call: allow, ask, deny.")
    rules: list[str] = Field(default_factory=list, max_length=1_000, description="The rules that decided it, by name.")
    policy: str = Field(default="", max_length=64, description="SHA-256 of the policy.toml that answered.")
    judges: list[str] = Field(default_factory=list, max_length=1_000, description="Rules whose judge settled the ask.")
    consents: list[str] = Field(
        default_factory=list, max_length=1_000, description="Who had decided about a call when it was made."
    )
    wants: list[Want] = Field(default_factory=list, max_length=10, description="Whom the plan wants to approve it.")
    must: bool = Field(default=False, description="The call asks for that reason alone; else only if it asks at all.")
    authors: list[str] = Field(
        default_factory=list, max_length=200, description="Authors of the call; after `?`, one that proves nothing."
    )
    keys: dict[str, str] = Field(
        default_factory=dict,
        description="Public keys, hexadecimal, of people and pages who sign for themselves.",
    )
    linked: str = Field(default="", max_length=1_000, description="Workflow of a child, an agent, or an earlier run.")
    signed: Signed | None = None


class Entry(Act):
    """An entry of a record: bound to the one before."""

    number: int = Field(ge=1)
    previous: str = Field(pattern=r"^[0-9a-f]{64}$", description="Hash of the entry before; of the first: the origin.")
    hash: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of all the rest.")


digest_of = digest_of_data


def short(text: Any, limit: int = NAME) -> str:
    """A text that others wrote, of bounded length; anything else counts as none."""
    return text[:limit] if isinstance(text, str) else ""
