"""The seams of a worker: what a feature offers to it, and puts around each attempt of a step.

An attempt is an onion, as the SDK's `ActivityInboundInterceptor`: each `Layer` is called with what is inside it, and
may do something before and after, change the result, or not call it at all.

    class Timed(Layer):
        async def call(self, attempt, inner):
            began = time.monotonic()
            try:
                return await inner()
            finally:
                log(attempt.tool.spec.name, time.monotonic() - began)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from temporalio.client import Client

from plansurvive.activities.llm.composing import Composer
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.values.redaction import Seen
from plansurvive.plans.activity_io import Call, CheckRequest, Return
from plansurvive.plans.definition.language import PLAIN, Language
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.llm.answers import AnswerKind
from plansurvive.plans.llm.request import LlmAnswer
from plansurvive.plans.model import Plan, Problem, ToolSpec
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.signature import Signature
from plansurvive.runtime.plan_files.library import Library
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.unused import Leftovers, Records, Unused
from plansurvive.runtime.value_store import ValueStore

if TYPE_CHECKING:  # commands load the seams as well
    from temporalio.worker import Worker

    from plansurvive.runtime.connect import Connection


class Waits(PlanError):
    """Raised by a layer: the attempt does not begin, and the same call is worth trying again in `seconds`.

    It uses up no attempt of the step and holds no slot of the worker meanwhile (`activities.attempt.waiting`). `what`
    names for people what it waits for; `code` is the subclass's.
    """

    def __init__(self, what: str, seconds: float, reason: str) -> None:
        super().__init__(reason)
        self.what, self.seconds = what, seconds


@dataclass
class Attempt:
    """One attempt of a step, whose arguments are filled in and checked. Layers set `parts` and `taken_from`."""

    tool: Tool
    context: ToolContext
    args: Mapping[str, Any]
    """The arguments without what layers have filled in (`Layer.arguments`)."""
    is_filled: bool
    """Layers have filled in values that only this worker has."""
    clean: Callable[[str], str]
    """Takes the secrets of the worker out of a text."""
    values: ValueStore
    """Where large values are stored."""
    parts: dict[str, Part] = field(default_factory=dict)
    """What the call returns besides, by feature: for its `settled` (plans/run/feature.py)."""
    taken_from: str | None = None
    """PLAN/STEP whose result a layer has given instead of calling the tool."""


class ToolCalls(Protocol):
    """What a worker calls its tools with, one attempt at a time, where the activity is not the tool's own.

    `activities.attempt.run.Attempts` is it, and says what each of these does.
    """

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The worker's own, by name."""

    def begun(self, tool: Tool, call: Call, *, again: bool, began: datetime) -> ToolContext:
        """The context of an attempt that begins."""

    async def made(self, tool: Tool, context: ToolContext, number: int) -> Return:
        """Make the attempt."""

    def failed(self, error: BaseException, context: ToolContext, duration: float) -> tuple[ToolError, dict[str, Any]]:
        """The failure of an attempt."""

    def ended(self, context: ToolContext) -> None:
        """No further attempt follows one that has failed."""


@dataclass(frozen=True)
class LlmAttempt:
    """One request to the LLM that is about to be sent."""

    key: str
    """Its idempotency key: the same for all attempts."""
    tokens: int
    """Tokens that it is expected to take, prompt and answer."""


class Layer:
    """What a feature puts around attempts. Override the seams that it fills; these here add nothing."""

    async def judged(self, tool: Tool, context: ToolContext, args: Mapping[str, Any]) -> Call:  # noqa: ARG002
        """The call as it may be made, with these arguments filled in; they hold nothing of the worker's own yet.

        First of all that layers are asked: a call that may not be made raises ToolError. Example: `policy`.
        """
        return context.call

    async def arguments(self, tool: Tool, call: Call, args: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """The arguments with what only the worker has, as the feature's part of the call says it; else as they are.

        Last of all that is filled in: nothing is looked for in it. Raises ToolError. Example: `secrets`.
        """
        return args

    def call(self, attempt: Attempt, inner: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:  # noqa: ARG002
        """Around the call of a tool: `inner` watches the workspace, calls it, and returns its value. May raise Waits.

        The value is as history has it: a LargeValue for one that is stored. A layer that does not call `inner` sets
        `attempt.taken_from`; files that it has written then count as the tool's. Append to `attempt.context.confirm`
        what must be asked once more right before the tool is called.
        """
        return inner()

    async def attempt(self, tool: Tool, context: ToolContext, inner: Callable[[], Awaitable[Return]]) -> Return:  # noqa: ARG002
        """Around the whole attempt: `inner` also looks up whether a call that must not be repeated was made already.

        Example: `hosts` takes a checkpoint of what the call has left, before the result is told.
        """
        return await inner()

    async def request(self, attempt: LlmAttempt, inner: Callable[[], Awaitable[LlmAnswer]]) -> LlmAnswer:  # noqa: ARG002
        """Around a request to the LLM. May raise Waits."""
        return await inner()


class MoreTools:
    """Tools that a feature offers beside the worker's own; they may come and go while the worker runs."""

    @property
    def specs(self) -> Mapping[str, ToolSpec]:
        """Those that there are now, by name."""
        raise NotImplementedError

    @property
    def earlier(self) -> Mapping[str, ToolSpec]:
        """All that there ever were: a check that runs in a thread may ask for one that has just gone."""
        raise NotImplementedError

    def tool(self, name: str) -> Tool | None:
        """The tool of that name, as far as it is known now; None if the name is not one of the feature's."""
        raise NotImplementedError


class InWorker:
    """What one feature does in a worker process; made once. Override what it fills."""

    feature: ClassVar[str]
    others: WorkerFeatures
    """The features of the process, this one among them; set once all are made."""

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        """`fault` is called where a crash of the worker matters; tests crash it there. Raises SettingError."""
        self.client, self.settings, self.fault = client, settings, fault

    @asynccontextmanager
    async def running(
        self, own: Collection[str], say: Callable[[str], None], masked: Sequence[Seen], *, first: bool  # noqa: ARG002
    ) -> AsyncIterator[None]:  # fmt: skip
        """As long as the process polls: opened before it, closed after its last activity has ended.

        In the order of the features, and closed in the reverse order. `own`: names of the worker's own tools. `say`:
        prints a line for whoever started the worker. `masked`: what features have masked in texts. `first`: the only
        process of the worker, or the first of several. Example: the connections of `tool_servers`.
        """
        yield

    def activities(self) -> Sequence[Callable[..., object]]:
        """Activities that the workflows of the feature call."""
        return ()

    def activities_with(self, calls: ToolCalls) -> Sequence[Callable[..., object]]:  # noqa: ARG002
        """Activities of the feature that call tools themselves. Example: `express` makes several calls in one."""
        return ()

    def tools(self) -> MoreTools | None:
        """The tools that it offers to plans; None if there are none. Asked while it is running."""
        return None

    def queues(self, queue: str) -> Sequence[str]:  # noqa: ARG002
        """Task queues that it polls beside one of the worker's own, for activities only. Example: those of a host."""
        return ()

    def gives_directories(self) -> bool:
        """Whether each plan gets a directory of its own from it, so that no plan names the workspace itself."""
        return False

    def keeps_versions(self, workspace: str) -> bool:  # noqa: ARG002
        """Whether it keeps what has changed in a directory itself, so that an undo of files leaves that as it is.

        Example: `worktrees` has commits of it.
        """
        return False

    def before_check(self) -> Callable[[CheckRequest], Awaitable[None]] | None:
        """What waits, before the worker checks a plan, for what the check needs to know; None: nothing does.

        It may raise ApplicationError, to be tried again. Examples: `tool_servers` waits for servers that still start,
        `audit` notes that a plan begins.
        """
        return None

    def problems(self, plan: Plan, workspace: str) -> Sequence[Problem]:  # noqa: ARG002
        """What is wrong with a plan in a workspace of this worker, which the client may not have. May block.

        Example: `children` looks for the templates that steps run.
        """
        return ()

    def layer(self, tools: Iterable[Tool]) -> Layer | None:  # noqa: ARG002
        """Its layer around attempts of these tools; None if it has none, or nothing is set that needs it."""
        return None

    def facts(self, _: CheckRequest) -> Part | None:
        """What a plan of this worker needs to know, recorded once per plan as a part of its facts."""
        return None

    def unproven(self, signature: Signature | None, message: str) -> str | None:  # noqa: ARG002
        """Why a start does not count, where only signed ones do; empty if it counts, None if it cannot say.

        Asked in an activity of the workflow that was started. `message`: the digest of what was signed.
        Example: `signing` verifies the signature of an undo.
        """
        return None


class InProcess:
    """What one feature does for a worker process as a whole; made before it connects. Override what it fills."""

    feature: ClassVar[str]

    def __init__(self, settings: Settings, child: int | None, masked: Sequence[Seen]) -> None:
        """`child`: number of the process in a pool. `masked`: what features have masked in texts. Raises SettingError.

        Example: `telemetry` writes logs as JSON from here on, errors of the connection included.
        """
        self.settings, self.child, self.masked = settings, child, masked

    def connected(self, connection: Connection) -> Connection:
        """The connection that the workers of the process use; the same one if nothing is to be added."""
        return connection

    def made(self, worker: Worker) -> None:
        """A worker has been made and is about to poll."""

    @asynccontextmanager
    async def running(self, client: Client, indexed: bool) -> AsyncIterator[None]:  # noqa: ARG002
        """As long as the process polls. `indexed`: the server has our search attributes."""
        yield

    @staticmethod
    def pool(settings: Settings) -> AbstractAsyncContextManager[None]:  # noqa: ARG004
        """In the process that keeps those of a pool, as long as it does. Raises SettingError."""
        return nullcontext()


@dataclass(frozen=True)
class WorkerFeatures:
    """The features of a worker process, in the order of `features.FEATURES`."""

    names: tuple[str, ...] = ()
    """All of them, those without this side included."""
    in_worker: Sequence[InWorker] = ()
    checks: Sequence[Callable[[Plan], list[Problem]]] = ()
    """What of a plan does not fit the settings; the same in `plan check`."""
    unused: Sequence[Unused] = ()
    """What they keep in the state directory until nobody has used it for long; the same in `plan prune`."""
    records: Sequence[Records] = ()
    """What they say of the removal of records; the same in `plan prune`."""
    leftovers: Sequence[Leftovers] = ()
    """What steps have left with them; the same in `plan prune`."""
    library: Library = field(default_factory=Library)
    """Plans that are kept under names; the same in `plan check`."""
    masked: Sequence[Seen] = ()
    """What they know and no history, view or log may show."""
    language: Language = PLAIN
    """What they add to the language of plans."""
    views: ViewSet = NO_VIEWS
    """What they add to views."""
    answers: Mapping[str, AnswerKind] = field(default_factory=dict)
    """The kinds of answers that they ask the LLM for, by name."""
    composers: Mapping[str, Composer] = field(default_factory=dict)
    """Who composes requests to the LLM that have a part of theirs instead of messages, by feature."""
    specs: Sequence[Callable[[ToolSpec], ToolSpec]] = ()
    """What they say of a tool, when the worker starts and again for each plan; the same in `plan tools`."""
    rules: Sequence[Rules] = ()
    """Their pure sides, as a workflow has them; for what decides in its place."""

    def __post_init__(self) -> None:
        """Let each know the others."""
        for each in self.in_worker:
            each.others = self

    @asynccontextmanager
    async def running(
        self, own: Collection[str], say: Callable[[str], None], *, first: bool = True
    ) -> AsyncIterator[None]:
        """See `InWorker.running`."""
        async with AsyncExitStack() as opened:
            for each in self.in_worker:
                await opened.enter_async_context(each.running(own, say, self.masked, first=first))
            yield

    @property
    def activities(self) -> list[Callable[..., object]]:
        """The activities of all features."""
        return [activity for each in self.in_worker for activity in each.activities()]

    def activities_with(self, calls: ToolCalls) -> list[Callable[..., object]]:
        """See `InWorker.activities_with`."""
        return [activity for each in self.in_worker for activity in each.activities_with(calls)]

    @property
    def tools(self) -> list[MoreTools]:
        """The tools that they offer now."""
        return [tools for each in self.in_worker if (tools := each.tools()) is not None]

    def queues(self, queue: str) -> list[str]:
        """See `InWorker.queues`."""
        return [name for each in self.in_worker for name in each.queues(queue)]

    @property
    def gives_directories(self) -> bool:
        """See `InWorker.gives_directories`."""
        return any(each.gives_directories() for each in self.in_worker)

    def keeps_versions(self, workspace: str) -> bool:
        """See `InWorker.keeps_versions`."""
        return any(each.keeps_versions(workspace) for each in self.in_worker)

    @property
    def before_check(self) -> list[Callable[[CheckRequest], Awaitable[None]]]:
        """See `InWorker.before_check`."""
        return [before for each in self.in_worker if (before := each.before_check()) is not None]

    def problems(self, plan: Plan, workspace: str) -> list[Problem]:
        """See `InWorker.problems`."""
        return [problem for each in self.in_worker for problem in each.problems(plan, workspace)]

    def described(self, spec: ToolSpec) -> ToolSpec:
        """The spec of a tool with what the features say of it."""
        for say in self.specs:
            spec = say(spec)
        return spec

    def layers(self, tools: Iterable[Tool]) -> list[Layer]:
        """The layers around attempts of these tools, the outermost first. Raises SettingError."""
        return [layer for each in self.in_worker if (layer := each.layer(tools)) is not None]

    def unproven(self, signature: Signature | None, message: str) -> str:
        """See `InWorker.unproven`. What no feature can verify does not count."""
        said = [why for each in self.in_worker if (why := each.unproven(signature, message)) is not None]
        return next((why for why in said if why), "") if said else "no feature of this worker verifies signatures"

    def facts(self, request: CheckRequest) -> dict[str, Part]:
        """The parts of the facts of a plan. Raises SettingError."""
        parts = [part for each in self.in_worker if (part := each.facts(request)) is not None]
        return {part.feature: part for part in parts}


class Onion:
    """The layers around attempts, the first one outermost. Which of them fill a seam is decided once."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.judging = _filling(Layer.judged, layers)
        """Those that may refuse a call."""
        self.of_arguments = _filling(Layer.arguments, layers)
        """Those that may fill in something of the worker's own."""
        inside_out = layers[::-1]
        self._calls = _filling(Layer.call, inside_out)
        self._attempts = _filling(Layer.attempt, inside_out)
        self._requests = _filling(Layer.request, inside_out)

    def around_call(self, attempt: Attempt, inner: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        """Call the tool through the layers that surround calls."""
        for layer in self._calls:
            inner = partial(layer.call, attempt, inner)
        return inner()

    def around_attempt(
        self, tool: Tool, context: ToolContext, inner: Callable[[], Awaitable[Return]]
    ) -> Awaitable[Return]:
        """Make an attempt through the layers that surround attempts."""
        for layer in self._attempts:
            inner = partial(layer.attempt, tool, context, inner)
        return inner()

    def around_request(self, attempt: LlmAttempt, inner: Callable[[], Awaitable[LlmAnswer]]) -> Awaitable[LlmAnswer]:
        """Send a request through the layers that surround requests."""
        for layer in self._requests:
            inner = partial(layer.request, attempt, inner)
        return inner()


def _filling(seam: Callable[..., object], layers: Sequence[Layer]) -> list[Layer]:
    return [layer for layer in layers if getattr(type(layer), seam.__name__) is not seam]
