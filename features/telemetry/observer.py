"""The interceptor that sees each activity of a worker begin and end, and tells traces, metrics and logs of it.

Three kinds of activities count: calls of tools, LLM requests, and the last activity of a plan or agent. The spans of a
plan and of its steps are written there, from the record; with ids that follow from the plan, so that doing it again
writes the same. Nothing that goes wrong here reaches a step.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from temporalio import activity
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.common import RawValue
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from plansurvive.activities.attempt.compact import returned
from plansurvive.activities.attempt.inner import INNER, Told
from plansurvive.activities.tools.outgoing import OUTGOING
from plansurvive.features.telemetry.attempt_spans import Ended, Outcome, spans_of, usage_of
from plansurvive.features.telemetry.current_attempt import CURRENT, Attempted, outgoing
from plansurvive.features.telemetry.json_logs import EVENT, OWN, plan_of
from plansurvive.features.telemetry.propagation import carried_in
from plansurvive.features.telemetry.spans import Attribute, Span, cut, plan_spans
from plansurvive.features.telemetry.trace_context import Carried, TraceContext, of_attempt, of_step
from plansurvive.plans.activity_io import WORKER_LOST, AgentEvent, Call
from plansurvive.plans.flow.ids import of_call
from plansurvive.plans.llm.request import LlmAnswer, LlmRequest
from plansurvive.plans.run import DONE, Run, run_of
from plansurvive.plans.views.steps.row import status_word
from plansurvive.runtime.settings import Settings

if TYPE_CHECKING:
    from plansurvive.features.telemetry.instruments import Instruments
    from plansurvive.features.telemetry.span_export import SpanExport

_LOG = logging.getLogger(__name__)
_AGENT_ENDS = {"completed": "", "interrupted": "", "failed": "AGENT_FAILED", "timeout": "AGENT_FAILED"}
"""Events that end an agent, and the code of the error that each is."""
REMEMBERED = 1_000
"""Plans and agents whose end this process remembers to have told."""


@dataclass
class Observer(ClientInterceptor, Interceptor):
    """Of one worker process, given to its client, from which its workers take it over.

    What is None is off. `logs`: whether what ends is logged.
    """

    settings: Settings
    spans: SpanExport | None = None
    metrics: Instruments | None = None
    logs: bool = False
    _told: OrderedDict[str, None] = field(default_factory=OrderedDict, init=False, repr=False)

    def is_new(self, end: str) -> bool:
        """Whether the end of this plan or agent was not told before: its last activity may run again."""
        if end in self._told:
            return False
        self._told[end] = None
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        return True

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """The interceptor of one worker's activities."""
        return _Observed(next, self)


class _Observed(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, observer: Observer) -> None:
        super().__init__(next)
        self._observer = observer

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Run the activity; then tell what became of it."""
        seen = _Seen.of(input)
        inner = INNER.set(partial(self._within, seen))
        try:
            with self._current(seen):
                result = await self.next.execute_activity(input)
        except BaseException as error:
            await self._tell(seen, None, error)
            raise
        else:
            await self._tell(seen, returned(result), None)
            return result
        finally:
            INNER.reset(inner)

    @contextmanager
    def _current(self, seen: _Seen) -> Iterator[None]:
        """Log lines, requests and spans of the tool's own belong to the attempt."""
        token, going = CURRENT.set(seen.attempted), OUTGOING.set(outgoing(seen.attempted))
        try:
            with _span_of(seen.attempted.trace if self._observer.spans else None):
                yield
        finally:
            CURRENT.reset(token)
            OUTGOING.reset(going)

    @contextmanager
    def _within(self, around: _Seen, tool: str, call: str, step_id: str) -> Iterator[Told]:
        """An attempt that the activity makes itself, told of as if it had one of its own."""
        info = replace(
            around.info, activity_type=tool, activity_id=call, attempt=1, started_time=datetime.now(UTC)
        )  # fmt: skip
        seen = _Seen.of_step(info, None, around.carried, step_id)

        def told(outcome: Outcome, code: str) -> None:
            try:
                _Report(self._observer, seen).call(Ended(outcome, code))
            except Exception:  # whatever it is, it is not the step's fault
                _LOG.warning("telemetry of %s was lost", tool, exc_info=True)

        with self._current(seen):
            yield told

    async def _tell(self, seen: _Seen, result: Any, error: BaseException | None) -> None:
        try:
            await _Report(self._observer, seen).tell(result, error)
        except Exception:  # whatever it is, it is not the step's fault
            _LOG.warning("telemetry of %s was lost", seen.info.activity_type, exc_info=True)


@dataclass(frozen=True)
class _Seen:
    """An activity that has begun."""

    info: activity.Info
    argument: Any
    carried: Carried | None
    above: TraceContext | None
    """The span that it belongs to: of its step, agent or plan."""
    attempted: Attempted

    @classmethod
    def of(cls, input: ExecuteActivityInput) -> _Seen:
        info, carried = activity.info(), carried_in(input.headers)
        argument = input.args[0] if input.args else None
        is_call = isinstance(argument, Call | list)  # a list: those of tool servers get their arguments undecoded
        if isinstance(argument, Call) and argument.earlier:  # attempts that another activity has made count as well
            info = replace(info, attempt=info.attempt + len(argument.earlier))
        step_id = argument.step_id if isinstance(argument, Call) else of_call(info.activity_id)[0] if is_call else ""
        return cls.of_step(info, argument, carried, step_id)

    @classmethod
    def of_step(cls, info: activity.Info, argument: Any, carried: Carried | None, step_id: str) -> _Seen:
        """An attempt of a step; of none, if that has no id."""
        above = carried and carried.own
        if above is not None and step_id and info.workflow_type == "PlanWorkflow":
            above = of_step(above, step_id)
        trace = above and of_attempt(above, info.activity_id, info.attempt)
        attempted = Attempted(info.workflow_id or "", step_id, info.activity_type, info.attempt, trace)
        return cls(info, argument, carried, above, attempted)


class _Report:
    """What is told of one activity that has ended."""

    def __init__(self, observer: Observer, seen: _Seen) -> None:
        self._spans, self._metrics, self._settings = observer.spans, observer.metrics, observer.settings
        self._observer, self._seen, self._info, self._now = observer, seen, seen.info, datetime.now(UTC)

    async def tell(self, result: Any, error: BaseException | None) -> None:
        """Tell traces, metrics and logs what became of it."""
        argument = self._seen.argument
        if self._seen.attempted.step_id:
            self.call(Ended.of(result, error))
        elif isinstance(argument, LlmRequest):
            self._request(Ended.of(result, error), result, error)
        elif error is None and isinstance(argument, AgentEvent) and argument.kind in _AGENT_ENDS:
            await self._agent(argument)
        elif error is None and self._info.activity_type == "record_end" and isinstance(argument, RawValue):
            await self._plan(argument)

    def call(self, ended: Ended) -> None:
        """Tell what became of an attempt of a step."""
        tool, seconds = self._info.activity_type, self._seconds()
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": cut(tool), "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": cut(self._info.activity_id), **self._place(),
            "plans.step.id": cut(self._seen.attempted.step_id),
        }  # fmt: skip
        self._add(lambda above: spans_of(self._info, above, f"execute_tool {cut(tool)}", attributes, ended, self._now))
        if self._metrics is not None:
            outcome = "failed" if ended.outcome == "again" else ended.outcome
            self._metrics.attempt(tool, outcome, seconds)
            for attempt in ended.earlier:
                if attempt.code == WORKER_LOST:
                    self._metrics.attempt(tool, "lost", None)
        self._log("attempt ended", outcome=ended.outcome, code=ended.code or None, seconds=round(seconds, 3))

    def _request(self, ended: Ended, answer: LlmAnswer | None, error: BaseException | None) -> None:
        wanted = self._settings.model or ""
        model, (prompt, completion) = cut(answer.model if answer else wanted), usage_of(answer, error)
        place = urlsplit(self._settings.openai_base_url)
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": cut(wanted),
            "server.address": place.hostname or "", **({"server.port": place.port} if place.port else {}),
            **self._place(), "plans.llm.purpose": cut(self._purpose()),
        }  # fmt: skip
        own: dict[str, Attribute] = {
            "gen_ai.usage.input_tokens": prompt, "gen_ai.usage.output_tokens": completion
        }  # fmt: skip
        if answer is not None:
            reasons = (cut(answer.finish_reason),)
            own |= {"gen_ai.response.model": model, "gen_ai.response.finish_reasons": reasons}
            own |= {"gen_ai.output.type": "text" if answer.mode == "text" else "json"}
        name = f"chat {cut(wanted)}"
        self._add(lambda above: spans_of(self._info, above, name, attributes, ended, self._now, own, "client"))
        if self._metrics is not None:
            outcome = "completed" if ended.outcome == "completed" else "failed"
            self._metrics.request(wanted, outcome, self._seconds())
            cost = self._settings.cost_of(model, prompt, completion)
            if cost is None:
                cost = self._settings.cost_of(wanted, prompt, completion)
            self._metrics.tokens(wanted, prompt, completion, cost)
        seconds = round(self._seconds(), 3)
        self._log("LLM request ended", outcome=ended.outcome, code=ended.code or None, model=model, seconds=seconds)

    async def _agent(self, event: AgentEvent) -> None:
        error, carried = _AGENT_ENDS[event.kind], self._seen.carried
        if not self._observer.is_new(f"{event.kind} {event.agent_id}"):
            return
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": cut(event.agent_id),
            "gen_ai.agent.name": cut(event.agent_type), "plans.agent.end": event.kind, **self._place(),
        }  # fmt: skip
        if self._spans is not None and carried is not None:
            began = min(carried.began or event.time, event.time)
            name = f"invoke_agent {cut(event.agent_type)}"
            self._spans.add(Span(name, carried.own, carried.parent, began, event.time, attributes, error))
            await self._spans.flush()
        self._log("agent ended", outcome=event.kind)

    async def _plan(self, record: RawValue) -> None:
        if not self._observer.is_new(f"{self._info.workflow_id} {self._info.workflow_run_id}"):
            return
        run = await asyncio.to_thread(run_of, record.payload.data)
        carried = self._seen.carried
        if self._spans is not None and carried is not None:
            for span in await asyncio.to_thread(lambda: list(plan_spans(run, carried))):
                self._spans.add(span)
            await self._spans.flush()
        if self._metrics is not None:
            began = run.created or run.started or self._now
            outcomes, status = _outcomes(run), run.status.value
            failed = status == "failed" or any(outcome == "failed" for _, outcome in outcomes)
            self._metrics.plan(status, ((run.ended or self._now) - began).total_seconds(), failed)
            for (tool, outcome), number in outcomes.items():
                self._metrics.steps(tool, outcome, number)
        self._log("plan ended", status=run.status.value, steps=len(run.steps))

    def _purpose(self) -> str:
        """The kind of request: its purpose names a step or an attempt after the first word."""
        argument = self._seen.argument
        return argument.purpose.split()[0] if isinstance(argument, LlmRequest) and argument.purpose.strip() else ""

    def _place(self) -> dict[str, Attribute]:
        return {"plans.plan.id": cut(plan_of(self._seen.attempted.workflow_id))}

    def _seconds(self) -> float:
        return max(0.0, (self._now - self._info.started_time).total_seconds())

    def _add(self, spans: Callable[[TraceContext], Iterator[Span]]) -> None:
        if self._spans is not None and self._seen.above is not None:
            for span in spans(self._seen.above):
                self._spans.add(span)

    def _log(self, message: str, **fields: Any) -> None:
        if self._observer.logs:
            told = {name: value for name, value in fields.items() if value is not None}
            OWN.info(message, extra={EVENT: told})


def _outcomes(run: Run) -> Counter[tuple[str, str]]:
    """The steps of a plan that has ended, by tool and outcome."""
    found = Counter[tuple[str, str]]()
    for step_id, state in run.steps.items():
        step = run.step_of(step_id)
        outcome = status_word(state) if state.status in DONE else "blocked"
        found[(step.tool if step and step.tool else "block", outcome)] += 1
    return found


@contextmanager
def _span_of(trace: TraceContext | None) -> Iterator[None]:
    """Let spans that a tool makes with OpenTelemetry's API belong to the attempt."""
    if trace is None:
        yield
        return
    from opentelemetry import context
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    flags = TraceFlags(TraceFlags.SAMPLED if trace.sampled else TraceFlags.DEFAULT)
    found = SpanContext(int(trace.trace_id, 16), int(trace.span_id, 16), is_remote=False, trace_flags=flags)
    token = context.attach(set_span_in_context(NonRecordingSpan(found)))
    try:
        yield
    finally:
        context.detach(token)
