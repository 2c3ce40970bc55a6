"""Signed starts and decisions: applies the rule of the worker's facts (PLANS_DECISIONS=signed) to a run.

The rule is known once `check_plan` has answered. A start without a good signature keeps no waiver: its approvals are
strict. Decisions that arrived before could not be checked and do not count. A run that continues as new is trusted as
before, and a child agent as its parent: both are started by this program.

Messages are signed for the run's nonce, the random seed of its first run, which the memo shows to whoever decides. The
server takes a reset for another run with another seed, the same on every replay. Then there is a new nonce; what was
decided and not yet used counts no more, and the run's waivers neither: they were given for one run of the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from temporalio import workflow
from temporalio.common import RawValue

from plansurvive.plans import signatures
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.execution.asking import void_answer
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Problem
from plansurvive.plans.parts import Part
from plansurvive.plans.run import DONE, Decision, PlanStatus, Run, Status
from plansurvive.plans.signatures import (
    ADDED,
    NONCE,
    SCHEDULE,
    SEED_OF_START,
    START,
    Signature,
    one_object,
    schedule_of,
    signature_of,
    signed_bytes,
)
from plansurvive.workflows.inputs import is_carried

UNSIGNED = "unsigned start: waivers are ignored, approvals are strict"
RESET = "the run was reset"


class StartProof(NamedTuple):
    """What is left of a start's signature until the worker's facts are known; and the decisions that it brought."""

    signature: Signature | None
    content: bytes
    decided: Mapping[str, Decision]
    remembered: Mapping[str, str]
    was_reset: asyncio.Event
    """Set by each reset."""


def proof_of(arguments: Sequence[Any]) -> tuple[Signature | None, bytes]:
    """The signature of a start, and the bytes that it must be of. Cheap where there is none."""
    message = one_object(arguments)
    signature = signature_of(message)
    if signature is None:
        return None, b""
    name = schedule_of(workflow.info().workflow_id)  # by the id alone: anybody may set a search attribute
    kind = SCHEDULE if name else START
    return signature, signed_bytes(kind, name or workflow.info().workflow_id, "", message, signature.id, signature.time)


def opened(run: Run, signature: Signature | None, content: bytes) -> StartProof:
    """The proof of a run that has just been opened. Raises InvalidPlan for one that would escape the worker's check."""
    if run.status is not PlanStatus.DRAFT and not is_carried():
        text = "a run to start from must be a draft; `plan resume` makes one of an ended plan"
        raise InvalidPlan([Problem(code="PLAN_SCHEMA", field="run.status", message=text)])
    first = workflow.random_seed()
    if not is_carried():
        run.nonce, run.reset, run.signatures = _nonce(first), False, signatures.Signatures()
    was_reset = asyncio.Event()
    workflow.register_random_seed_callback(lambda seed: _reset(run, seed, was_reset))
    began_with = workflow.extern_functions().get(SEED_OF_START)
    if began_with is not None and began_with() != first:
        _reset(run, first, was_reset)
    return StartProof(signature, content, dict(run.decisions), dict(run.remembered), was_reset)


def _nonce(seed: int) -> str:
    return f"{seed:016x}"


def _reset(run: Run, seed: int, was_reset: asyncio.Event) -> None:
    """Note that the run was reset. Called outside the workflow's loop: nothing of the workflow can be asked here.

    A reset may be all that the task brings, and the SDK looks at conditions only after something else: so the event.
    """
    run.nonce, run.reset, run.signatures = _nonce(seed), True, signatures.Signatures()
    was_reset.set()


def judge(run: Run, proof: StartProof) -> None:
    """Apply the rule to a run whose facts have just become known."""
    key, since, info = run.facts.decision_key, run.facts.schedule_since, workflow.info()
    if not key:
        return
    publish(run)
    if run.reset:
        why = RESET
    elif info.parent is not None:
        why = "that of its plan is not signed" if run.unsigned else ""
    elif schedule_of(info.workflow_id):
        why = signatures.schedule_problem(key, proof.signature, proof.content, info.workflow_id, info.start_time, since)
    else:
        why = signatures.start_problem(key, proof.signature, proof.content, info.start_time, since)
    kept = {} if why else proof.decided
    for step_id in [name for name in run.decisions if run.decisions[name] != kept.get(name)]:
        del run.decisions[step_id]
        text = f"the decision on step '{step_id}' came before its signature could be checked; decide again"
        run.note(LogKind.VOID, text, workflow.now(), step_id, code="UNSIGNED")
    if why:
        _discard(run, "came before signatures could be checked", "UNSIGNED")
    run.remembered = {} if why else dict(proof.remembered)
    run.unsigned, run.reset = bool(why), False
    if why:
        _be_strict(run, why)


async def watch(run: Run, was_reset: asyncio.Event) -> None:
    """Publish the nonce of a run that continues another one, and act on every reset, whatever the run waits for."""
    if is_carried():
        publish(run)
    while True:
        await was_reset.wait()
        was_reset.clear()
        after_reset(run)


def publish(run: Run) -> None:
    """Tell in the memo what messages to this run are signed for."""
    if run.facts.decision_key:
        workflow.upsert_memo({NONCE: run.nonce})


def memo_of(run: Run) -> dict[str, Any] | None:
    """The memo for continue-as-new; None: that of the start. Without the nonce in it, what is decided before the next
    run's first task would be signed for nothing, and refused."""
    if not run.facts.decision_key:
        return None
    kept = {name: RawValue(payload) for name, payload in workflow.info().raw_memo.items()}  # anybody may write a memo
    return {**kept, NONCE: run.nonce}


def after_reset(run: Run) -> None:
    """Discard what was decided before a reset and is not used yet, and the waivers. Before anything starts."""
    if not run.reset or not run.facts.decision_key:
        return
    run.reset, now = False, workflow.now()
    publish(run)
    used = (Status.RUNNING, *DONE)
    for step_id in [name for name in run.decisions if name not in run.steps or run.steps[name].status not in used]:
        del run.decisions[step_id]
        known = step_id if step_id in run.steps else None
        run.note(LogKind.VOID, f"the decision on step '{step_id}' was made before a reset; decide again", now, known,
                 code="RESET")  # fmt: skip
    _discard(run, "came before a reset", "RESET")
    run.remembered, run.unsigned = {}, True
    _be_strict(run, RESET)


def _be_strict(run: Run, why: str) -> None:
    run.facts = run.facts.model_copy(update={"strict_approvals": True})
    run.options = run.options.model_copy(update={"approve_all": False})
    run.note(LogKind.WARNING, f"{UNSIGNED} ({why})", workflow.now(), code="UNSIGNED")


def _discard(run: Run, why: str, code: str) -> None:
    """Discard the answers that no step has used, and what features keep of messages."""
    now = workflow.now()
    for step_id, state in run.steps.items():
        if state.answer is not None and not state.answer.used:
            void_answer(run, step_id, now, f"{why}; answer again", code)
    for part in run.parts.values():
        if isinstance(part, Part) and (what := part.unproven()):
            run.note(LogKind.VOID, f"{what} {why}; send again what steps still wait for", now, code=code)


def check(run: Run, kind: str, arguments: Sequence[Any], name: str = "") -> Signature | None:
    """The good signature of a message; None if the worker asks for none. `name`: of the signal, if it is one.

    Raises Refused.
    """
    if not run.facts.decision_key:
        return None
    message = {**one_object(arguments), **ADDED.get(name, {})}
    workflow_id = workflow.info().workflow_id
    return signatures.checked(run.facts.decision_key, kind, workflow_id, run.nonce, message, run.signatures)


def take(run: Run, kind: str, arguments: Sequence[Any], name: str = "") -> None:
    """As `check`, and let the signature count no second time."""
    after_reset(run)  # first: it would take back what the message decides
    signature = check(run, kind, arguments, name)
    if signature is None:
        return
    nonce = run.nonce
    run.signatures, run.nonce = signatures.noted(run.signatures, signature, nonce)
    if run.nonce != nonce:
        publish(run)
