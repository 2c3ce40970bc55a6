"""Answers to questions: which count, and which are refused. The first one counts, as with approvals.

An answer may come before its step asks. It then counts if it fits once the question is known; else the step asks, and
the log says why. An answer that names a digest is about exactly that question. Nothing here sets a status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from plansurvive.features.waiting.messages import AnswerQuestion
from plansurvive.plans.definition import questions
from plansurvive.plans.definition.questions import ASK
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.asking import digest_of_question, question_of, void_answer
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import DONE, Run, Status
from plansurvive.plans.run.people import is_verified
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.step_state import Answer, by_whom

ANSWER_TIMEOUT = "ANSWER_TIMEOUT"
_SHOWN = 200
"""Characters of an answer in the log."""


def check(schedule: ReadinessIndex, message: AnswerQuestion) -> None:
    """Raise Refused if the answer cannot be accepted. The question then stays."""
    run, name = schedule.run, message.step_id
    if name not in run.steps:
        raise unknown_step(name, run)
    step, state = schedule.step(name), run.steps[name]
    if step.tool != ASK and not state.wants_answer:
        way = f"; it awaits approval: plan approve {run.plan.id} {name}" if state.awaiting == "approval" else ""
        raise Refused(f"step '{name}' asks no question{way}", "NOT_A_QUESTION")
    earlier = run.steps[name].answer
    if earlier is not None and not (earlier.used and state.status not in DONE):  # else it was asked again
        raise Refused(f"step '{name}' was already answered{by_whom(earlier)}", "ALREADY_DECIDED")
    if state.permanently_blocked or state.status in DONE:
        status = "permanently blocked" if state.status is Status.BLOCKED else f"already {state.status}"
        raise Refused(f"step '{name}' is {status} and no longer asks", "TOO_LATE")
    known = question_of(run, step)
    _check_digest(run, step, message, known)
    why = questions.misfit(known, message.value) if known is not None else ""
    if why:
        raise Refused(f"this does not answer step '{name}': {why}", "INVALID_ANSWER")


def _check_digest(run: Run, step: Step, message: AnswerQuestion, known: Mapping[str, Any] | None) -> None:
    """Raise Refused for an answer to another question, or one that does not say to which of several it belongs."""
    digest = digest_of_question(known) if known is not None else ""
    if message.digest is not None and message.digest != digest:
        text = f"the answer is to another question (digest {message.digest[:12]}…) than step '{step.id}' asks now"
        raise Refused(f"{text}; read it with `plan pending` and answer that", "STALE_DIGEST")
    if message.digest is None and approvals.is_changed(run, step.id):
        text = f"the question of step '{step.id}' has changed, and the answer does not say to which it belongs"
        raise Refused(f"{text}; read it with `plan pending` and send its `digest`", "DIGEST_REQUIRED")


def take(
    schedule: ReadinessIndex, message: AnswerQuestion, now: datetime, source: Literal["signal", "update"]
) -> Answer:
    """Record an answer. Raises Refused, with the run unchanged, if it cannot be accepted."""
    check(schedule, message)
    run, name = schedule.run, message.step_id
    known = question_of(run, schedule.step(name))
    digest = digest_of_question(known) if known is not None else ""
    answer = Answer(
        by=message.by, via=message.via, verified=is_verified(run, message), time=now, source=source,
        value=message.value, digest=digest,
    )  # fmt: skip
    run.steps[name].answer = answer
    run.note(LogKind.ANSWERED, sentence(name, answer), now, name)
    return answer


def standing(run: Run, step_id: str, args: Mapping[str, Any], now: datetime) -> Answer | None:
    """The answer that came before the step asks, if it answers this question. One that does not is discarded."""
    answer = run.steps[step_id].answer
    if answer is None or answer.used:
        return None
    why = "was to another question" if answer.digest and answer.digest != digest_of_question(args) else ""
    misfit = "" if why else questions.misfit(args, answer.value)
    why = why or (f"does not fit: {misfit}" if misfit else "")
    if not why:
        return answer
    void_answer(run, step_id, now, f"{why}; it asks again")
    return None


def take_default(run: Run, step_id: str, now: datetime) -> None:
    """Record that nobody answered in time, and the default counts."""
    state = run.steps[step_id]
    state.answer = Answer(time=now, source="timeout", value=(state.asked or {})["default"])


def sentence(step_id: str, answer: Answer) -> str:
    """The answer as a sentence, for the log and for the reply to the person who gave it."""
    text = json.dumps(answer.value, ensure_ascii=False, default=str)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
    return f"step '{step_id}' answered{_who(answer)}: {shown}"


def _who(answer: Answer) -> str:
    if answer.source == "timeout":
        return " by its time limit"
    return f" by {answer.who}" if answer.by else ""
