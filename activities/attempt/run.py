"""One attempt of a step: calls its tool, as a Temporal activity of the tool's name.

Order: resolve the deferred references, check the arguments, call the tool within its timeout, store its value.
Meanwhile `activities.attempt.heartbeat` reports progress and counts the tool's errors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from pydantic import ValidationError
from temporalio import activity

from plansurvive.activities.attempt.cancellation import cancelled_once
from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.attempt.heartbeat import Heartbeat
from plansurvive.activities.attempt.run_once import once
from plansurvive.activities.attempt.stored_arguments import as_texts, filled
from plansurvive.activities.attempt.undelivered import Undelivered
from plansurvive.activities.attempt.waiting import waiting
from plansurvive.activities.feature import Attempt, Waits
from plansurvive.activities.outputs.recorder import Outputs
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.values.errors import masked_error, tool_error
from plansurvive.activities.values.redaction import Secrets
from plansurvive.activities.values.results import keep
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.plans.activity_io import Call, Note, Return
from plansurvive.plans.definition.arguments import argument_problems
from plansurvive.plans.errors import ToolError
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model.tool_spec import needs_approval
from plansurvive.runtime.errors import KeyMissing
from plansurvive.runtime.value_store import ValueStore

LONGEST_WAIT = 86_400.0
"""Maximum seconds between two attempts."""
THREAD_GRACE = 2.0
"""Seconds that a tool in a thread has to notice its cancellation."""


@dataclass(frozen=True)
class Attempts:
    """What a worker calls tools with, one attempt at a time. Large values go into `values`.

    `effects` makes file changes exactly-once and keeps calls from repeating; `site`: the worker's services for tools.
    """

    values: ValueStore
    effects: Effects
    site: ToolEnvironment = field(default_factory=ToolEnvironment)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The worker's own, by name."""

    def begun(self, tool: Tool, call: Call, *, again: bool, began: datetime) -> ToolContext:
        """The context of an attempt that begins. `again`: there was an earlier one, whose worker may have died."""
        here = self.site
        workspace = here.workspace(call.workspace, call.directory, call.plan_id)
        return ToolContext(
            call, workspace, self.effects, tool.spec.name, again, fault=here.fault, outputs=self._outputs, began=began
        )

    @cached_property
    def _outputs(self) -> Outputs:
        return Outputs(self.values, self.site.secrets, self.site.output_bytes)

    async def made(self, tool: Tool, context: ToolContext, number: int) -> Return:
        """Make the attempt, within the layers around it. `number`: it counts the tool's errors.

        Raises ToolError with its texts masked, Waits if a layer says that it does not begin, and what is no failure of
        the call: KeyMissing, CancelledError.
        """
        started, site, call = time.monotonic(), self.site, context.call

        async def work() -> Return:
            try:
                value, around = await _call(tool, call, context, self.values, site)
            except Exception as error:  # masked here: before the effect log has it, and before it is cut
                raise masked_error(error, site.secrets) from None
            return await _return(value, around, context, _since(started), number, self.values)

        async def single() -> Return:
            return await once(context, work, partial(site.looked, tool, context))

        return await site.onion.around_attempt(tool, context, work if call.repeatable else single)

    def failed(self, error: BaseException, context: ToolContext, duration: float) -> tuple[ToolError, dict[str, Any]]:
        """The failure of an attempt for people, without secrets, and what it reports besides."""
        found = tool_error(error)
        message = self.site.secrets.out_of(found.message)
        told = ToolError(found.code, message, retryable=found.retryable, retry_after=found.retry_after)
        return told, {"duration": duration, **left_by(context)}

    def ended(self, context: ToolContext) -> None:
        """Release what is held for a call that has failed for the last time."""
        self.site.ended(context)


def tool_activity(
    tool: Tool, values: ValueStore, effects: Effects, site: ToolEnvironment | None = None
) -> Callable[[Call], Awaitable[Return]]:
    """The activity that calls `tool`, for a worker to register; see `Attempts`."""
    calls, undelivered = Attempts(values, effects, site or ToolEnvironment()), Undelivered()
    here = calls.site

    @activity.defn(name=tool.spec.name)
    async def attempt(call: Call) -> Return:
        info = activity.info()
        if (ended := undelivered.of_earlier_attempt(info)) is not None:
            return ended
        context = calls.begun(tool, call, again=info.attempt > 1 or bool(call.earlier), began=info.started_time)
        heartbeat = Heartbeat(lambda: _progress(context, here.secrets), call.retry, call.earlier, call.step_id)
        started = time.monotonic()
        try:
            made = calls.made(tool, context, heartbeat.errors + 1)
            with heartbeat.beating():
                done = await (cancelled_once(made) if tool.sees_workspace else made)
            done = done.model_copy(update=heartbeat.before) if heartbeat.before else done
            undelivered.keep(info, done)
            return done
        except Waits as wait:
            raise await waiting(wait, heartbeat, here.lift) from None
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, KeyMissing) or (_is_cancelled(error) and not _has_news(context, heartbeat)):
                raise  # of a missing key, the converter says when to try again
            told, details = calls.failed(_cause(error), context, _since(started))
            failure = heartbeat.failure(told, told.message, details, LONGEST_WAIT)
            if failure.non_retryable:
                calls.ended(context)
                undelivered.keep(info, failure)
            raise failure from None
        finally:
            context.cancel()

    return attempt


async def _call(
    tool: Tool, call: Call, context: ToolContext, values: ValueStore, site: ToolEnvironment
) -> tuple[Any, Attempt]:
    """The value, the tool's own or what a layer gave instead; and what the layers add to it."""
    if tool.sees_workspace:
        site.check(call.workspace, call.directory, call.plan_id)
    tool = await tool.current(context)
    written = args = await filled(tool, call, values)
    for layer in site.onion.judging:
        call = context.call = await layer.judged(tool, context, args)
    for layer in site.onion.of_arguments:
        args = await layer.arguments(tool, call, args)
    keywords = _checked(tool, args, call, context, is_filled=args is not written)
    context.sandbox, context.addresses = site.sandbox, site.addresses

    async def made() -> Any:
        for confirm in context.confirm:
            await confirm()
        value = await _in_time(tool, call, context, keywords)
        context.ended = time.time_ns()
        return value

    async def watched() -> Any:
        return await keep(await site.around(tool, context, as_texts(call, written), made), values, site.secrets)

    attempt = Attempt(tool, context, written, args is not written, site.secrets.out_of, values)
    value = await site.onion.around_call(attempt, watched)
    if attempt.taken_from is not None:
        await site.replaced(tool, context)
    return value, attempt


async def _in_time(tool: Tool, call: Call, context: ToolContext, keywords: dict[str, Any]) -> Any:
    """Call the tool within the step's timeout. Raises STEP_TIMEOUT."""
    try:
        async with asyncio.timeout(call.timeout) as limit:
            if tool.is_async:
                return await tool.function(**keywords)
            return await _in_thread(tool.function, keywords, context)
    except TimeoutError:
        if not limit.expired():
            raise
        where = f"; its last progress was: {context.line}" if context.line else ""
        raise ToolError(
            "STEP_TIMEOUT",
            f"{tool.spec.name} took longer than {call.timeout:g} seconds, the step's timeout{where}",
            retryable=True,
        ) from None
    except SystemExit as error:
        raise ToolError("TOOL_FAILED", f"{tool.spec.name} tried to exit the worker ({error})") from None


def _checked(tool: Tool, args: dict[str, Any], call: Call, context: ToolContext, *, is_filled: bool) -> dict[str, Any]:
    """The function's keyword arguments. Raises INVALID_ARGS, or APPROVAL_REQUIRED if they need an approval.

    `is_filled`: they hold values that only the worker has.
    """
    problems = [f"{field}: {sentence}" for field, sentence in argument_problems(tool.spec, as_texts(call, args))]
    keywords: dict[str, Any] = {}
    if not problems:
        try:
            keywords = tool.keywords(args, context)
        except ValidationError as error:
            problems = [f"args.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    if problems and is_filled:  # what is wrong is said with a part of the value
        problems = [f"{each.partition(': ')[0]}: does not fit; it may hold a secret" for each in problems]
    if problems:
        raise ToolError("INVALID_ARGS", f"Invalid args for {tool.spec.name}: {'; '.join(problems)}")
    if tool.spec.asks_by_default(args) and not call.approved:
        raise ToolError("APPROVAL_REQUIRED", needs_approval(tool.spec.name))
    return keywords


async def _in_thread(function: Callable[..., Any], keywords: dict[str, Any], context: ToolContext) -> Any:
    """Call a plain function in a thread. On cancellation, signal it and wait up to THREAD_GRACE for it to return."""
    call = partial(copy_context().run, _guarded, function, keywords)
    work = asyncio.get_running_loop().run_in_executor(None, call)  # as `asyncio.to_thread`, without a task
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        context.cancel()
        await asyncio.wait([work], timeout=THREAD_GRACE)
        if work.done() and not work.cancelled():
            work.exception()  # retrieve it, or asyncio logs it as never retrieved
        raise


def _guarded(function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
    try:
        return function(**keywords)
    except (StopIteration, SystemExit) as error:  # neither may cross from a thread into the event loop
        raise ToolError("TOOL_FAILED", f"{type(error).__name__}: {error}", retryable=True) from None


async def _return(
    kept: Any, around: Attempt, context: ToolContext, duration: float, attempt: int, values: ValueStore
) -> Return:
    left = {
        "read": context.files_read,
        "wrote": context.files_written,
        "deleted": context.files_deleted,
        "shared": context.files_shared,
        "shared_with": context.shared_with,
        "more_files": context.more_files,
        "sandbox": context.level,
        "notes": context.notes and [await _stored_note(note, values) for note in context.notes],
        "warnings": context.warnings,
        "logs": context.logs,
        "taken_from": around.taken_from,
        "parts": dict(around.parts),
    }
    given: dict[str, Any] = {name: each for name, each in left.items() if each}  # a call leaves little of it
    given["large" if isinstance(kept, LargeValue) else "value"] = kept
    return Return(duration=duration, attempt=attempt, **given)


async def _stored_note(note: Note, values: ValueStore) -> Note:
    """The agents.md text, moved to the value store if it is long."""
    text = await keep(note.text, values)
    return note.model_copy(update={"text": None, "large": text}) if isinstance(text, LargeValue) else note


def _progress(context: ToolContext, secrets: Secrets) -> dict[str, Any]:
    """What the heartbeat says of the attempt while it runs."""
    found = {
        "progress": context.percent,
        "logs": context.logs and context.logs.model_dump(mode="json", exclude_defaults=True),
    }
    return {"line": secrets.out_of(context.line), **{name: value for name, value in found.items() if value is not None}}


def left_by(context: ToolContext) -> dict[str, Any]:
    """Error details: the files that a failed attempt changed nevertheless, its sandbox level and its warnings."""
    wrote = {path: stamp and stamp.model_dump(mode="json") for path, stamp in context.files_written.items()}
    left = {
        "wrote": wrote,
        "deleted": context.files_deleted,
        "shared": context.files_shared,
        "sharedWith": context.shared_with,
        "missing": context.files_missing,
        "moreFiles": context.more_files,
        "sandbox": context.level,
        "warnings": context.warnings,
        "parts": {name: part.model_dump(mode="json", exclude_defaults=True) for name, part in context.left.items()},
    }
    return {name: value for name, value in left.items() if value}


def _is_cancelled(error: BaseException) -> bool:
    """Whether this activity is being cancelled, as opposed to a CancelledError from a task of the tool's own."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _cause(error: BaseException) -> ToolError:
    # An activity that ends as cancelled cannot tell anything. So it fails, for its plan to know the output and files.
    return ToolError("CANCELLED", "cancelled while it ran") if _is_cancelled(error) else tool_error(error)


def _has_news(context: ToolContext, heartbeat: Heartbeat) -> bool:
    """Whether the call was cancelled by its plan, not with its worker, and left anything: attempts, output, files."""
    details, logs = activity.cancellation_details(), context.logs
    if details is None or not details.cancel_requested:
        return False
    left = left_by(context).keys() - {"sandbox"}
    return bool(heartbeat.attempts or left) or (logs is not None and logs.stdout + logs.stderr > 0)


def _since(started: float) -> float:
    return round((time.monotonic() - started) * 1000, 3)
