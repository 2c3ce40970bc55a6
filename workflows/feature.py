"""The seam of workflow code: what a feature does in one run of PlanWorkflow or AgentWorkflow.

Deterministic, as all workflow code. The workflow holds a `Collaborators`, made when its facts are known, and asks it at
the points below; nothing else of a feature is named in `workflows/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from temporalio import workflow

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.definition.language import Language
from plansurvive.plans.errors import Refused
from plansurvive.plans.feature import Rules, RuleSet
from plansurvive.plans.model import Problem
from plansurvive.plans.run import Run
from plansurvive.workflows.execution import Execution

Seam = TypeVar("Seam")
Method = TypeVar("Method", bound=Callable[..., None])


class FeatureMissing(RuntimeError):
    """The worker lacks a feature that the run was begun with.

    No PlanError: it fails the workflow task, not the plan, which waits for a worker that has the feature.
    """

    code = "FEATURE_MISSING"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"{self.code}: this plan was begun by a worker with the features {', '.join(names)}, which this one lacks;"
            " start a worker that has them"
        )


def signal(description: str) -> Callable[[Method], Method]:
    """Declares a method of an `InRun` as the handler of the signal of that name; it may raise Refused."""

    def declare(method: Method) -> Method:
        method.__dict__["signal_description"] = description
        return method

    return declare


class InRun:
    """What one feature does in one run of a workflow. Override the seams that it fills; these here do nothing."""

    feature: ClassVar[str]

    def __init__(self, execution: Execution) -> None:
        self.execution = execution

    @classmethod
    async def refused(cls, run: Run, facts: Facts, problems: Sequence[Problem]) -> None:
        """The worker refuses the plan, which never begins. `facts`: of that worker. Example: `notify` says so."""

    def turn(self) -> bool:
        """Before each turn of a plan. False: no step may start in it. Example: `locks` waits for the workspace."""
        return True

    async def turned(self) -> bool:
        """After each turn of a plan, before it waits for news. True: something changed, the next turn begins at once.

        It may end the plan. `execution.wake` begins a turn when the feature has news. Example: the timer of `deadline`.
        """
        return False

    def shown(self) -> None:
        """The state has changed and is about to be shown, once a turn at most. Example: `notify` looks for news."""

    async def resting(self) -> None:
        """Before continue-as-new: wait for what must not be cut off. What is kept is in the run's part."""

    async def ended(self) -> None:
        """The plan has ended and its summary is recorded: the last that the workflow does."""


class Collaborators:
    """The features of one run, each asked at the seams that it fills."""

    def __init__(self, made: Sequence[InRun] = ()) -> None:
        self._by_name = {each.feature: each for each in made}
        self._turn = _filled(made, InRun.turn, lambda each: each.turn)
        self._turned = _filled(made, InRun.turned, lambda each: each.turned)
        self._shown = _filled(made, InRun.shown, lambda each: each.shown)
        self._resting = _filled(made, InRun.resting, lambda each: each.resting)
        self._ended = _filled(made, InRun.ended, lambda each: each.ended)

    def turn(self) -> bool:
        """See `InRun.turn`. All are asked, whatever the first one says."""
        answers = [seam() for seam in self._turn]
        return all(answers)

    async def turned(self) -> bool:
        """See `InRun.turned`. The first that changes something ends the round: the others are asked after its turn."""
        for seam in self._turned:
            if await seam():
                return True
        return False

    def received(self, feature: str, name: str, arguments: Sequence[Any]) -> None:
        """Hand a signal to the feature that declares it (`signal`). Raises Refused if the run does not have it."""
        if feature not in self._by_name:
            raise Refused(f"there is no signal '{name}' for this plan", "UNKNOWN_SIGNAL")
        getattr(self._by_name[feature], name)(*arguments)

    def shown(self) -> None:
        """See `InRun.shown`."""
        for seam in self._shown:
            seam()

    async def resting(self) -> None:
        """See `InRun.resting`."""
        for seam in self._resting:
            await seam()

    async def ended(self) -> None:
        """See `InRun.ended`."""
        for seam in self._ended:
            await seam()


@dataclass(frozen=True)
class Features:
    """What a workflow class is composed with (`features.workflow_types`), in the order of `features.FEATURES`."""

    names: tuple[str, ...] = ()
    """All features of the worker, those without a side in pure or workflow code included."""
    rules: tuple[Rules, ...] = ()
    in_run: tuple[type[InRun], ...] = ()
    languages: Mapping[str, Language] = field(default_factory=dict)
    """What they add to the language of plans, by name."""

    def gathered(self, execution: Execution) -> Collaborators:
        """The features that ask and are asked in a run: those of the worker it was begun with, for its whole life.

        Another worker may have more or fewer, and must decide the same. Raises FeatureMissing if this one lacks some.
        """
        names = execution.run.facts.features
        if missing := [name for name in names if name not in self.names]:
            raise FeatureMissing(missing)
        execution.schedule.rules = RuleSet([each for each in self.rules if each.name in names])
        execution.run.language = Language.of(self.languages[name] for name in names if name in self.languages)
        return Collaborators([kind(execution) for kind in self.in_run if kind.feature in names])


def _filled(made: Sequence[InRun], unfilled: object, of: Callable[[InRun], Seam]) -> list[Seam]:
    """The seams that are filled: those that are not the base class's own."""
    seams = [of(each) for each in made]
    return [seam for seam in seams if getattr(seam, "__func__", None) is not unfilled]


def handlers_of(kinds: Sequence[type[InRun]]) -> type:
    """A base class for a workflow class, with the handlers of the signals that these declare."""
    declared = [
        (kind.feature, name, method.signal_description)
        for kind in kinds
        for name, method in vars(kind).items()
        if hasattr(method, "signal_description")
    ]
    return type("FeatureHandlers", (), {name: _handler(feature, name, text) for feature, name, text in declared})


def _handler(feature: str, name: str, description: str) -> Callable[..., None]:
    def handle(self: Any, *arguments: Any) -> None:
        self.received(feature, name, arguments)

    handle.__name__, handle.__qualname__ = name, f"FeatureHandlers.{name}"
    return workflow.signal(name=name, description=description)(handle)
