"""Proposals: what a feature has a person asked about a step besides a call and a question, and its words in views.

`StepState.proposal` is one; its first key is its kind, which names it in cards, summaries and lists. The feature says
in words what that is (`plans.in_views.InViews.proposals`). A kind of a feature that a process does not have is shown
by its name, and whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from plansurvive.plans.log import LogKind


class Named(NamedTuple):
    """A value that is shown under a name, whole."""

    name: str
    value: Any


def named(args: Any) -> list[Named]:
    """The arguments of a call, each under its name."""
    return [Named(*each) for each in args.items()] if isinstance(args, Mapping) else []


@dataclass(frozen=True)
class Proposal:
    """What one kind of proposals is in words."""

    reason: str
    """Why a person is asked."""
    heading: str
    """The question: `Exceed the budget?`."""
    wanted: str
    """What the step awaits: `approval of a larger LLM budget`."""
    approving: str
    """What an approval does, before the id of the step: `extends the budget for`."""
    awaited: str
    """What a plan awaits in a list, before the id of the step: `budget for`."""
    parts: Callable[[str, str, Mapping[str, Any]], list[Named]]
    """All of it. Arguments: id and tool of the step, and what the person was shown (`StepState.asked`)."""
    asked_with: LogKind | None = None
    """The kind of the log entry with which a step asks while it runs; None: none does."""


def whole(kind: str, args: Mapping[str, Any]) -> list[Named]:
    """All of a proposal, with the failure that it is about, and every other value under its own name."""
    rest = dict(args)
    found = [Named(kind, rest.pop(kind, None))]
    failure = rest.pop("failure", "")
    return [*found, *([Named("failure", failure)] if failure else []), *named(rest)]
