"""Runs plan steps as child workflows (PlanWorkflow). The child's value, files and tokens count as the step's.

The content of a file or template is loaded by an activity and recorded with its hash, before a person is asked whether
the step may start: an approval covers exactly that content. A child asks for its own approvals under its own id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import TypedSearchAttributes
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

from plansurvive.features.children import batches, child_run, results
from plansurvive.features.children.accounts import opened
from plansurvive.features.children.files import placed
from plansurvive.features.children.handles import Handles, cancel
from plansurvive.features.children.judged import judged
from plansurvive.features.children.model import LoadedPlan, LoadedUndo, LoadRequest, UndoRequest
from plansurvive.features.children.orders import Source, inline_data, inputs_of, source_of
from plansurvive.features.children.place import SharedPlace
from plansurvive.features.children.requests import must_ask
from plansurvive.plans.child_ids import child_id
from plansurvive.plans.child_state import ChildPlan, ChildReport, must_load
from plansurvive.plans.definition.scopes import UNDO
from plansurvive.plans.errors import BadReference, InvalidPlan, PlanError
from plansurvive.plans.execution import accounts, approvals
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.flow.ids import activity_id
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import PlanStatus, Run, text_of
from plansurvive.plans.run.step_call import upcoming
from plansurvive.plans.run.undone import undone_child
from plansurvive.workflows import policies, search_attributes
from plansurvive.workflows.payloads import LARGE
from plansurvive.workflows.place import Destination

APPROVAL = "APPROVAL_REQUIRED"


class ChildPlans:
    """The child plans of one Run's steps."""

    def __init__(self, schedule: Schedule, handles: Handles, place: SharedPlace) -> None:
        self._schedule, self._handles, self._place = schedule, handles, place

    def start(self, step: Step, args: dict[str, Any]) -> asyncio.Task[dict[str, Any]]:
        """Load and start the plan that the arguments name.

        The task returns what a tool's activity would; raises ApplicationError, APPROVAL_REQUIRED if a person must be
        asked now that the content is known.
        """
        if (undone := self._undone_by(step)) is not None:
            return asyncio.create_task(self._undo(step, undone))
        if self._is_batch(step):
            self._run.steps[step.id].child = ChildPlan(kind="inline")
            return asyncio.create_task(self._run_child(step, None, {}))
        return asyncio.create_task(self._work(step, args))

    def _is_batch(self, step: Step) -> bool:
        """Whether it is some items of a loop with `mode: plans`."""
        return self._run.outline.loop_of(step.id) is not None

    def _undone_by(self, step: Step) -> str | None:
        """The id of the child plan that the step undoes: it closes the plan, and no `undo` is written for it."""
        name = step.id.removesuffix(f".{UNDO}")
        if not self._run.steps[step.id].closes or name not in self._run.outline:
            return None
        return undone_child(self._run.outline.step(name), self._run.steps[name])

    async def _undo(self, step: Step, plan_id: str) -> dict[str, Any]:
        """Run what undoes the steps of an ended child plan, as the plan that `plan undo` of that child would start."""
        self._run.steps[step.id].child = ChildPlan(kind="inline")
        try:
            loaded = await workflow.execute_activity(
                "load_undo",
                UndoRequest(plan_id=plan_id),
                result_type=LoadedUndo,
                activity_id=activity_id(step.id, "load_undo:{}".format),
                summary=f"{step.id} · load plan {plan_id}"[:200],
                start_to_close_timeout=policies.CHANGES.start_to_close,
                retry_policy=policies.CHANGES.retry_policy,
            )
            # A plan that rolls back undoes what plans say. In 1.0.0, so did one that a person undoes, in its children.
            closing = self._run.closing
            with_tools = closing is not None and bool(closing.of) and workflow.patched("undo-of-tools-in-children")
            child = child_run.undo_run(self._run, step, loaded, workflow.now(), with_tools=with_tools)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            code, text = getattr(error.cause, "type", None), getattr(error.cause, "message", None) or str(error.cause)
            raise ApplicationError(f"plan '{plan_id}' could not be undone: {text}"[:4_000], type=code) from None
        except ValidationError:
            raise ApplicationError(f"the record of plan '{plan_id}' cannot be read", type="QUERY_FAILED") from None
        if child is None:
            return {"value": None, "duration": 0.0, "wrote": {}}
        return await self._run_child(step, None, {}, made=child)

    def _state(self, step: Step) -> ChildPlan:
        return self._run.steps[step.id].child or ChildPlan(kind="inline")

    async def _work(self, step: Step, args: dict[str, Any]) -> dict[str, Any]:
        try:
            source, inputs = source_of(args), inputs_of(args)
        except BadReference as error:
            raise ApplicationError(error.message, type=error.code) from None
        state = self._run.steps[step.id]
        if source.kind == "inline":
            state.child = ChildPlan(kind="inline")
            data: Any = inline_data(source.value, inputs)
        else:
            if must_load(state.child, args):
                await self._load(step, source)
            self._require_approval(step)  # first, as the policy takes a decision for one about this content
            data = self._state(step).data
        said = await judged(self._schedule, step, args, self._place.execution.place)
        return {**await self._run_child(step, data, inputs, args.get("id")), **said}

    async def _load(self, step: Step, source: Source) -> None:
        try:
            begin = partial(self._loading, step, source)
            loaded = await self._place.execution.place.call(step, policies.SNAPSHOT, begin)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise asyncio.CancelledError from error
            cause = error.cause
            code = getattr(cause, "type", None) or "PLAN_NOT_LOADED"
            raise ApplicationError(
                f"the plan could not be loaded: {getattr(cause, 'message', cause)}"[:4_000], type=code
            ) from None
        self._run.steps[step.id].child = ChildPlan(
            kind=source.kind,
            named=str(source.value),
            source=loaded.source[:1_000],
            sha256=loaded.sha256,
            data=loaded.data,
        )
        self._run.note(
            LogKind.CHILD, f"loaded {loaded.source}, SHA-256 {loaded.sha256[:12]}…"[:500], workflow.now(), step.id
        )

    def _loading(self, step: Step, source: Source, to: Destination) -> workflow.ActivityHandle[LoadedPlan]:
        return workflow.start_activity(
            "load_plan",
            LoadRequest(
                workspace=self._run.workspace_of(step),
                directory=self._run.directory_of(step),
                plan_id=self._run.plan.id or "",
                **{source.kind: source.value},
            ),
            result_type=LoadedPlan,
            task_queue=to.queue,
            activity_id=activity_id(step.id, "load_plan:{}".format),
            summary=f"{step.id} · load {source.value}"[:200],
            schedule_to_start_timeout=to.patience,
            start_to_close_timeout=policies.SNAPSHOT.start_to_close,
            retry_policy=policies.SNAPSHOT.retry_policy,
        )

    def _require_approval(self, step: Step) -> None:
        """Raises APPROVAL_REQUIRED unless a person approved exactly this content, or none needs to."""
        run, call = self._run, upcoming(self._run, step).call
        if step.id in run.decisions:
            if approvals.covers(run, step, call):
                return
            approvals.void(run, step.id, workflow.now())
        elif not approvals.is_needed(run, step, call):
            return
        source = self._state(step)
        raise ApplicationError(f"it would run the plan {source.source} (SHA-256 {source.sha256[:12]}…)", type=APPROVAL)

    async def _run_child(
        self, step: Step, data: Any, inputs: dict[str, Any], chosen: str | None = None, *, made: Run | None = None
    ) -> dict[str, Any]:
        await self._place.settled(step)
        began, state = workflow.now(), self._run.steps[step.id]
        state.calls += 1
        if made is not None:
            plan_id, child = made.plan.id or "", made
            self._place.give(step, child)
        else:
            plan_id = child_id(self._run.plan.id or "", step.id, state.calls, chosen)
            child = self._child(step, data, inputs, plan_id)
        child.options = child.options.model_copy(
            update={"parts": self._schedule.rules.parts_for_child(self._run, step, child.plan)}
        )
        earlier = f", resuming '{child.resumes}'" if child.resumes else ""
        state.child = self._state(step).model_copy(
            update={"plan_id": plan_id, "title": child_run.described(step, self._state(step), child.plan)[:1_000]}
        )
        self._run.note(LogKind.CHILD, f"plan '{plan_id}' started{earlier}", began, step.id, subject=plan_id)
        try:
            found = await self._result(step, child)
        except WorkflowAlreadyStartedError:
            accounts.closed(self._run, step.id, lost=False)
            text = f"there is a plan '{plan_id}' already, and ids are never reused; change args.id, or leave it out"
            raise ApplicationError(text, type="PLAN_EXISTS") from None
        except (ChildWorkflowError, asyncio.CancelledError) as error:
            if not isinstance(error, ChildWorkflowError) or _is_being_cancelled():
                await cancel(f"plan-{plan_id}")
                if await self._handles.ended(step.id):
                    accounts.closed(self._run, step.id, lost=False)
                raise asyncio.CancelledError from error
            raise self._failure(step, child, error.cause) from error
        finally:
            self._handles.forget(step.id)
        return self._returned(step, child, found, (workflow.now() - began).total_seconds() * 1_000)

    def _child(self, step: Step, data: Any, inputs: dict[str, Any], plan_id: str) -> Run:
        run = self._run
        try:
            earlier = run.agents.get(step.id)
            if self._is_batch(step):
                child = batches.batch_run(run, step, earlier, plan_id, workflow.now(), self._schedule.rules)
            else:
                resumed = child_run.resumed_run(
                    run, step, earlier, inputs, plan_id, workflow.now(), self._schedule.rules
                )
                child = resumed or child_run.child_run(run, step, data, inputs, plan_id)
            self._place.give(step, child)
            return child
        except InvalidPlan as error:
            raise ApplicationError(f"the plan is not valid: {error.message}"[:4_000], type=error.code) from None
        except PlanError as error:
            raise ApplicationError(error.message, type=error.code) from None

    async def _result(self, step: Step, child: Run) -> dict[str, Any]:
        opened(self._run, step, child, asks=must_ask(self._schedule))
        text = text_of(child)
        handle = await self._handles.start(
            step.id,
            "PlanWorkflow",
            {"run": text if len(text) > LARGE else child.model_dump(mode="json", exclude_defaults=True)},
            f"plan-{child.plan.id}",
            _memo(child, self._state(step).title),
            self._index(child),
            f"{step.id} · {self._state(step).title}",
        )
        self._run.forget_child(step.id)  # not before: if this child never begins, the next run resumes that one
        self._handles.caught_up(step.id, self._run)
        return await asyncio.shield(handle)

    def _index(self, child: Run) -> TypedSearchAttributes | None:
        """The child's search attributes; None when they are not registered on the server."""
        resumes = child.resumes if search_attributes.takes_resumes() else ""
        known = self._run.facts.search_attributes
        return search_attributes.first(PlanStatus.RUNNING.value, child.plan.title, resumes) if known else None

    def _returned(self, step: Step, child: Run, summary: dict[str, Any], duration: float) -> dict[str, Any]:
        found = summary[results.KEY]
        files = self._taken(step, child, found)
        if found.get("code"):
            raise ApplicationError(str(found["error"])[:4_000], files, type=found["code"])
        state = self._run.steps[step.id]
        state.child = self._state(step).model_copy(update={"data": None})
        value = {"large": found["large"]} if "large" in found else {"value": found.get("value")}
        return {**value, "duration": duration, **files}

    def _failure(self, step: Step, child: Run, cause: BaseException | None) -> ApplicationError:
        """The failure of a child that returned no result: it failed, was cancelled by itself, or was terminated."""
        detail = cause.details[0] if isinstance(cause, ApplicationError) and cause.details else None
        found = detail.get(results.KEY) if isinstance(detail, dict) else None
        if isinstance(found, dict):
            files = self._taken(step, child, found)
            return ApplicationError(str(found.get("error"))[:4_000], files, type=str(found.get("code")))
        accounts.closed(self._run, step.id, lost=True)
        is_cancelled = cause is not None and is_cancelled_exception(cause)
        code = getattr(cause, "type", None) or ("PLAN_CANCELLED" if is_cancelled else "PLAN_FAILED")
        text = f"plan '{child.plan.id}': {getattr(cause, 'message', None) or cause or 'it was started before'}"
        return ApplicationError(text[:4_000], {"wrote": {}}, type=code)

    def _taken(self, step: Step, child: Run, found: Mapping[str, Any]) -> dict[str, Any]:
        """Take over what an ended child has spent and what its parent's views show; returns its files."""
        self._place.ended(found)
        accounts.ended(self._run, step.id, found, workflow.now())
        state = self._run.steps[step.id]
        report = ChildReport.model_validate(found["report"])
        state.child = self._state(step).model_copy(update={"report": report})
        if found.get("code") and self._is_batch(step):  # the values of the items that did not fail
            state.child = state.child.model_copy(
                update={"value": found.get("value"), "large": LargeValue.model_validate(found["large"])}
                if "large" in found else {"value": found.get("value")}
            )  # fmt: skip
        text = f"plan '{child.plan.id}' ended as {found['status']}"
        self._run.note(LogKind.CHILD, text, workflow.now(), step.id, subject=child.plan.id)
        own = "" if child.is_guest else child.options.workspace or ""  # of a guest the same, wherever that is now
        return placed(found, own, self._run.workspace_of(step))

    @property
    def _run(self) -> Run:
        return self._schedule.run


def _is_being_cancelled() -> bool:
    """Whether the step is cancelled, rather than its child alone."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _memo(child: Run, title: str) -> dict[str, Any]:
    """The child's memo: its title and number of steps for lists, the ids of its plan and step, and what it resumes.

    Also its time limit and its host, which it would otherwise have to add in its first turn (docs/temporal.md, 10).
    """
    link, limit = child.parent, child.time_limit
    links = {"planId": link.plan_id, "stepId": link.step_id} if link else {}
    resumes = {"resumes": child.resumes} if child.resumes else {}
    place = {"host": child.host.name} if child.host else {}
    limited = {"timeout": limit} if limit else {}
    return {"title": title[:1_000], "steps": len(child.plan.steps), **links, **resumes, **place, **limited}
