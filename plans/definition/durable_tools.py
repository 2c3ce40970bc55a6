"""What the tools that workflows run themselves are, besides what their specs say: `sleep`, and those of features.

No activity validates their arguments. So that is part of the language of plans (`Language.tools`), as the fields of a
step are: a plan is checked as a whole, wherever it comes from, and whatever runs its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

SLEEP = "sleep"
"""Name of the tool that is a timer."""
Args = Mapping[str, Any]


class Asks(NamedTuple):
    """Why a step of the tool waits for a person by itself, whatever its approval."""

    code: str
    reason: str
    is_question: bool = False
    """It is answered, not approved, so it asks even if a person has approved all of the plan (`--yes`)."""


@dataclass(frozen=True)
class DurableTool:
    """A tool that a feature runs in the workflow (`workflows.in_steps`), as its `language` declares it.

    Example: `ask` of the feature `waiting`, whose questions must be ones that somebody can answer.
    """

    name: str
    asks: Asks | None = None
    """What `plan check` says of its steps."""
    starts_workflow: bool = False
    """Its steps are workflows, with steps that may change files."""
    reads_first: Callable[[Args, Any], bool] = lambda *_: False
    """Whether a step is begun before a person is asked about it, given its `StepState`: it reads what it would do.

    It fails with APPROVAL_REQUIRED if a person has to be asked then. Example: the file of a child plan.
    """
    schema_args: tuple[str, ...] = ()
    """Arguments that say what its value is: the first one given is a JSON Schema, or the value may be anything."""
    tool_args: tuple[str, ...] = ()
    """Arguments that are lists of names of tools."""
    written_problems: Callable[[Args], list[tuple[str, str]]] = lambda _: []
    """What is wrong with arguments as their author wrote them, as (field, sentence).

    References are not looked into; each stands for some value.
    """
    problem: Callable[[Args], str] = lambda _: ""
    """What is wrong with arguments once their references are filled in; empty if nothing is."""
    unforeseen: str = ""
    """Why a dry run cannot say what comes of its steps, if it says so."""

    @property
    def is_question(self) -> bool:
        """Whether its steps ask a question (`plans.definition.questions`), which is answered and not approved."""
        return self.asks is not None and self.asks.is_question


UNDECLARED = DurableTool("")
"""One of which nothing more is known than its spec: `sleep`, and a tool of a feature that is not there."""
