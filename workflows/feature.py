"""The seam of workflow code: what a feature does in one run of PlanWorkflow or AgentWorkflow.

Deterministic, as all workflow code. The workflow holds a `Collaborators`, made when its facts are known, and asks it at
the points below; nothing else of a feature is named in `workflows/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

from temporalio import workflow

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.definition.language import Language
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.messages import MAX_BYTES, read
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.model import Problem, Value
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules, RuleSet
from plansurvive.workflows.admission import Admission
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.in_steps import InSteps, filled
from plansurvive.workflows.inputs import is_carried

_ABANDON = workflow.HandlerUnfinishedPolicy.ABANDON
Method = TypeVar("Method", bound=Callable[..., Any])


class FeatureMissing(RuntimeError):
    """The worker lacks a feature that the run was begun with.

    No PlanError: it fails the workflow task, not the plan, which waits for a worker that has the feature.
    """

    code = "FEATURE_MISSING"

    def __init__(self, names: Sequence[str]) -> None:
        lacking = f"the plan was started by a worker with the features {', '.join(names)}, which this one lacks"
        super().__init__(f"{self.code}: {lacking}; start a worker that has them")


@dataclass(frozen=True)
class Message:
    """A message that a method of an `InRun` handles: its docstring says for the reference what the message does.

    The method takes the message as `reads`, and runs once the features of the run are known; it may raise PlanError.
    What comes before waits for that: a signal in the order in which it came.
    """

    kind: Literal["signal", "update", "query"]
    name: str
    description: str
    reads: type[Value]
    signed: bool = False
    """Counts only with a good signature, where the worker asks for signed decisions."""
    validator: str = ""
    """Of an update: the method of the same arguments that raises PlanError for what leaves no trace in history."""
    max_bytes: int = MAX_BYTES
    """Longer ones are refused."""
    early: bool = False
    """Of a signal: one that comes before the features of the run are known does not wait (`InRun.early`)."""
    between: bool = False
    """Of a signal: one workflow of a plan sends it to another one, as a child plan and its parent do.

    It does not count among what others have sent (`plans.receipts`), and the audit record does not list it: the record
    of its sender says what it reports.
    """
    feature: str = ""
    method: str = ""

    def handled_by(self, method: Method) -> Method:
        """Declare the method as its handler."""
        method.__dict__["handles"] = self
        return method

    def read(self, arguments: Sequence[Any]) -> Value:
        """What a handler was given, as the message. Raises Refused."""
        return read(self.reads, arguments, max_bytes=self.max_bytes)


def signal(
    name: str, reads: type[Value], description: str, *,
    signed: bool = False, max_bytes: int = MAX_BYTES, early: bool = False, between: bool = False,
) -> Callable[[Method], Method]:  # fmt: skip
    """Declares a method of an `InRun` as the handler of a signal."""
    return Message(
        "signal", name, description, reads, signed, max_bytes=max_bytes, early=early, between=between
    ).handled_by


def update(
    name: str,
    reads: type[Value],
    description: str,
    *,
    signed: bool = False,
    validator: str = "",
    max_bytes: int = MAX_BYTES,
) -> Callable[[Method], Method]:
    """Declares a method of an `InRun` as the handler of an update; it returns the answer, as JSON data.

    It may be asynchronous: it is not waited for when the plan ends, and before continue-as-new it is.
    """
    return Message("update", name, description, reads, signed, validator, max_bytes).handled_by


class InRun:
    """What one feature does in one run of a workflow. Override the seams that it fills; these here do nothing."""

    feature: ClassVar[str]
    of_agents: ClassVar[bool | type[InRun]] = True
    """Whether agents have it as well as plans; or what they have in its place."""
    of_one_run: ClassVar[bool] = False
    """Its part of a run is of this run alone: one that resumes or reruns it begins without. Example: a held lock."""

    begins_empty: ClassVar[bool] = False
    """Its part of a run is never one that a run is started with: what it says must be proven. Example: approvals."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution

    @classmethod
    async def refused(cls, run: Run, facts: Facts, problems: Sequence[Problem]) -> None:
        """The worker refuses the plan, which never begins. `facts`: of that worker. Example: `notify` says so."""

    @classmethod
    def unfit(cls, run: Run, facts: Facts) -> Sequence[Problem]:  # noqa: ARG003
        """Why the plan may not begin with what the worker has said, in `facts`; it is then refused, if one is an error.

        Example: a child plan of `children` may not work outside of what its plan was granted.
        """
        return ()

    @classmethod
    async def placed(cls, run: Run, facts: Facts) -> Facts:  # noqa: ARG003
        """The worker has been asked, and the plan has not begun: the facts, for where its files will be.

        Before the features of the run are made. Example: `hosts` gets a directory for it at one host.
        """
        return facts

    @classmethod
    def early(cls, execution: Execution, message: Any) -> None:
        """A signal that was declared as `early` has come, and the features of the run are not known yet.

        Example: a child plan that waits for a worker to check it leaves a host that is lost.
        """

    def in_steps(self) -> Sequence[InSteps]:
        """What it does with steps. Examples: `waiting` asks questions, `planning` has the LLM recover what failed."""
        return ()

    async def write(self) -> bool:
        """Write the plan that the run's `request` asks for, and put it into review. False: it writes no plans.

        Once, before anything else happens in the run. Example: `planning` has the LLM write it.
        """
        return False

    def turn(self) -> bool:
        """Before each turn of a plan. False: no step may start in it. Example: `locks` waits for the workspace."""
        return True

    async def turned(self) -> bool:
        """After each turn of a plan, before it waits for news. True: something changed, the next turn begins at once.

        It may end the plan. `execution.wake` begins a turn when the feature has news. Example: the timer of `deadline`.
        """
        return False

    def keeps_open(self) -> bool:
        """Whether a plan with nothing left to do must not end yet. Example: the LLM revises it, and may add steps."""
        return False

    def shown(self) -> None:
        """The state has changed and is about to be shown, once a turn at most. Example: `notify` looks for news."""

    async def resting(self) -> None:
        """Before continue-as-new: wait for what must not be cut off. What is kept is in the run's part."""

    async def cut_short(self) -> None:
        """The run was cancelled and returns no result. Example: `children` tells the plan above what was left."""

    def returned(self, summary: dict[str, Any]) -> dict[str, Any] | None:  # noqa: ARG002
        """What the plan, which has ended, returns in place of its summary; None: it does not say.

        Example: of a child plan of `children` also what the plan above takes over.
        """
        return None

    async def ended(self) -> None:
        """The plan has ended and its summary is recorded: the last that the workflow does."""


class Collaborators:
    """The features of one run, each asked at the seams that it fills."""

    def __init__(self, made: Sequence[InRun] = ()) -> None:
        self._by_name = {each.feature: each for each in made}
        self._write = filled(made, InRun.write, lambda each: each.write)
        self._turn = filled(made, InRun.turn, lambda each: each.turn)
        self._turned = filled(made, InRun.turned, lambda each: each.turned)
        self._keeps_open = filled(made, InRun.keeps_open, lambda each: each.keeps_open)
        self._shown = filled(made, InRun.shown, lambda each: each.shown)
        self._resting = filled(made, InRun.resting, lambda each: each.resting)
        self._cut_short = filled(made, InRun.cut_short, lambda each: each.cut_short)
        self._returned = filled(made, InRun.returned, lambda each: each.returned)
        self._ended = filled(made, InRun.ended, lambda each: each.ended)

    async def write(self) -> bool:
        """See `InRun.write`. The first that does is the last that is asked."""
        for seam in self._write:
            if await seam():
                return True
        return False

    def turn(self) -> bool:
        """See `InRun.turn`. All are asked, whatever the first one says."""
        answers = [seam() for seam in self._turn]
        return all(answers)

    async def turned(self) -> bool:
        """See `InRun.turned`. Asks until one changes something; the rest are asked after the next turn."""
        for seam in self._turned:
            if await seam():
                return True
        return False

    def keeps_open(self) -> bool:
        """See `InRun.keeps_open`."""
        return any(seam() for seam in self._keeps_open)

    def handle(self, message: Message, method: str, value: Value) -> Any:
        """Have the feature's method handle a message as it was read. Raises Refused if the run lacks the feature."""
        if message.feature not in self._by_name:
            code = "UNKNOWN_SIGNAL" if message.kind == "signal" else "FEATURE_MISSING"
            raise Refused(f"there is no {message.kind} '{message.name}' for this plan", code)
        return getattr(self._by_name[message.feature], method)(value)

    def shown(self) -> None:
        """See `InRun.shown`."""
        for seam in self._shown:
            seam()

    async def resting(self) -> None:
        """See `InRun.resting`."""
        for seam in self._resting:
            await seam()

    async def cut_short(self) -> None:
        """See `InRun.cut_short`."""
        for seam in self._cut_short:
            await seam()

    def returned(self, summary: dict[str, Any]) -> dict[str, Any] | None:
        """See `InRun.returned`. The first that says something is the last that is asked."""
        said = (seam(summary) for seam in self._returned)
        return next((each for each in said if each is not None), None)

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
    admission: type[Admission] = Admission
    """Who may start and decide, where that must be signed."""
    languages: Mapping[str, Language] = field(default_factory=dict)
    """What they add to the language of plans, by name."""
    views: ViewSet = NO_VIEWS
    """What they add to views, which follow from no facts: nothing that a workflow does depends on them."""

    def gathered(self, execution: Execution) -> Collaborators:
        """The features that ask and are asked in a run: those of the worker it was begun with, for its whole life.

        Another worker may have more or fewer, and must decide the same. Raises FeatureMissing if this one lacks some.
        """
        names = execution.run.facts.features
        if missing := [name for name in names if name not in self.names]:
            raise FeatureMissing(missing)
        execution.schedule.rules = RuleSet([each for each in self.rules if each.name in names])
        execution.run.language = Language.of(self.languages[name] for name in names if name in self.languages)
        kinds = [kind for kind in self.in_run if kind.feature in names]
        if not is_carried():
            for kind in kinds:
                if kind.begins_empty or (kind.of_one_run and execution.run.resumes):
                    execution.run.parts.pop(kind.feature, None)
        made = [kind(execution) for kind in kinds]
        execution.take_features([in_steps for each in made for in_steps in each.in_steps()])
        return Collaborators(made)

    def unfit(self, run: Run, facts: Facts) -> list[Problem]:
        """See `InRun.unfit`: what the features of the worker say that these facts are of."""
        return [each for kind in self.in_run if kind.feature in facts.features for each in kind.unfit(run, facts)]

    async def placed(self, run: Run, facts: Facts) -> Facts:
        """See `InRun.placed`: asks the features of the worker that these facts are of."""
        for kind in self.in_run:
            if kind.feature in facts.features:
                facts = await kind.placed(run, facts)
        return facts

    def early(self, execution: Execution, message: Message, value: Value) -> None:
        """Hand a signal to its feature, of which there is nothing in the run yet."""
        next(kind for kind in self.in_run if kind.feature == message.feature).early(execution, value)

    @property
    def of_agents(self) -> Features:
        """The same for agents."""
        kinds = [(each, each.of_agents) for each in self.in_run]
        return replace(
            self, in_run=tuple(own if isinstance(own, type) else each for each, own in kinds if own is not False)
        )


def messages_of(kinds: Sequence[type[InRun]]) -> list[Message]:
    """The messages that these features handle."""
    return [
        replace(method.handles, feature=kind.feature, method=name)
        for kind in kinds
        for name, method in _methods(kind).items()
        if hasattr(method, "handles")
    ]


def _methods(kind: type[InRun]) -> dict[str, Any]:
    """What a class and those that it extends define, the latter first."""
    return {name: each for base in reversed(kind.__mro__) for name, each in vars(base).items()}


def handlers_of(kinds: Sequence[type[InRun]]) -> type:
    """A base class for a workflow class, with the handlers of the messages that these features handle.

    The workflow (`workflows.handlers`) takes them as it takes those of the core: refused, signed, logged alike.
    """
    made: dict[str, Any] = {}
    for message in messages_of(kinds):
        handler = {"signal": _of_signal, "update": _of_update, "query": _of_query}[message.kind](message)
        handler.__name__, handler.__doc__ = f"{message.kind}_{message.name}", _doc(kinds, message)
        handler.__qualname__ = f"FeatureHandlers.{handler.__name__}"
        declare: Any = getattr(workflow, message.kind)
        if message.kind == "update":
            declare = partial(declare, unfinished_policy=_ABANDON)
        made[handler.__name__] = declare(name=message.name, description=message.description)(handler)
        if message.kind == "update":
            made[f"_may_{message.name}"] = made[handler.__name__].validator(_of_validator(message))
    return type("FeatureHandlers", (), made)


def _doc(kinds: Sequence[type[InRun]], message: Message) -> str | None:
    [kind] = [each for each in kinds if each.feature == message.feature]
    doc: str | None = getattr(kind, message.method).__doc__
    return doc


def _of_signal(message: Message) -> Callable[..., Any]:
    def handle(self: Any, *arguments: Any) -> None:
        self.signalled(message, arguments)

    return handle


def _of_update(message: Message) -> Callable[..., Any]:
    async def handle(self: Any, *arguments: Any) -> Any:
        return await self.updated(message, arguments)

    return handle


def _of_validator(message: Message) -> Callable[..., Any]:
    def validate(self: Any, *arguments: Any) -> None:
        self.may_update(message, arguments)

    return validate


def _of_query(message: Message) -> Callable[..., Any]:
    def handle(self: Any, *arguments: Any) -> Any:
        return self.queried(message, arguments)

    return handle
