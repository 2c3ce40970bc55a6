"""What features add to the language of plans: words that only a worker gives a value, checks of steps, durable tools.

Validation, filling in and the LLM's edits ask a `Language`; without features it is `PLAIN`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from plansurvive.plans.definition.durable_tools import UNDECLARED, DurableTool
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import CallOf
from plansurvive.plans.model import Problem, Step, ToolSpec, Undo


class Wrong(NamedTuple):
    """A problem with a text in an argument."""

    code: str
    place: tuple[str | int, ...]
    message: str


@dataclass(frozen=True)
class Word:
    """A first name of references whose values only the worker has that makes the call: `secret` in `{{secret.X}}`.

    Where a step or variable has the same name, the text means that one. A tool that takes such references has the name
    in `ToolSpec.withheld`: `plans.run.step_call` leaves them in its arguments as they are written.
    """

    name: str
    misplaced: tuple[str, str]
    """Code and message of a problem: it is named where it has no value."""
    unknown: str
    """Code of problems that workers with other settings may not have."""
    problems: Callable[[ToolSpec, Mapping[str, Any], Mapping[str, ToolSpec], Hints], Iterator[Wrong]]
    """What is wrong with its use in the arguments of a call; given all tools, to tell unknown names from refused."""
    for_models: Callable[[ToolSpec, Sequence[Mapping[str, Any]]], ToolSpec]
    """The spec of a tool as a model may use it that writes or repairs a plan; given arguments that the plan has now."""


StepCheck = Callable[[Step, Mapping[str, ToolSpec]], Iterator[Problem]]
"""The problems of one step, besides those of its calls; not of those inside it."""

CallCheck = Callable[[CallOf, Mapping[str, ToolSpec], "Language"], Iterator[Problem]]
"""The problems of one call of a tool, in the whole language. Example: `children` checks the steps in its arguments."""


@dataclass(frozen=True)
class Language:
    """The language of plans, as a feature extends it, or all those of a process."""

    words: Sequence[Word] = ()
    checks: Sequence[StepCheck] = ()
    calls: Sequence[CallCheck] = ()
    tools: Sequence[DurableTool] = ()
    """The tools whose steps the feature runs in the workflow."""
    undoes: Mapping[str, Undo] = field(default_factory=dict)
    """By tool, what `plan undo` does about a completed step of it that has no `undo`. Example: a merge is reverted."""
    stays: Sequence[Callable[[Step], bool]] = ()
    """Whether `undoes` leaves out a step, with all that is inside. Example: what is in a worktree stays there."""

    @classmethod
    def of(cls, parts: Iterable[Language]) -> Language:
        """What several features add."""
        parts = list(parts)
        words, checks, calls, tools, stays = (
            tuple[Any, ...](chain.from_iterable(map(attrgetter(side), parts)))
            for side in ("words", "checks", "calls", "tools", "stays")
        )
        undoes = {name: each for part in parts for name, each in part.undoes.items()}
        return cls(words, checks, calls, tools, undoes, stays)

    def for_models(self, spec: ToolSpec, before: Sequence[Mapping[str, Any]] = ()) -> ToolSpec:
        """The spec of a tool as a model may use it. `before`: arguments of its calls that the plan has now."""
        for word in self.words:
            spec = word.for_models(spec, before)
        return spec

    def tool(self, name: str) -> DurableTool:
        """What is declared of a tool; nothing is of those that activities run."""
        return self._by_name.get(name, UNDECLARED)

    @cached_property
    def _by_name(self) -> Mapping[str, DurableTool]:
        return {each.name: each for each in self.tools}

    def word(self, name: str) -> Word | None:
        """The word of this name, if there is one."""
        return next((each for each in self.words if each.name == name), None)


PLAIN = Language()
"""The language of the core alone."""
