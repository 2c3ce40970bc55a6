"""Coding agents in runs: steps of a plan that are some; and in the run of one, what its turns report and ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow

from plansurvive.features.children.place import SharedPlace
from plansurvive.features.coding_agents.model import (
    MAX_SHOWN,
    TOOL,
    Answer,
    AskPermission,
    CodingSession,
    GivenDecision,
    Permission,
    ReportSession,
    ReportTasks,
)
from plansurvive.features.coding_agents.steps import CodingAgents
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.messages import AGENT_BYTES
from plansurvive.plans.model import Step
from plansurvive.plans.run import DONE, Run, Status
from plansurvive.plans.run.step_call import digest_of_data
from plansurvive.workflows.feature import InRun, signal, update
from plansurvive.workflows.in_steps import InSteps


class OfOne(InRun):
    """What the turns of a coding agent report to its workflow, and ask it."""

    feature = "coding_agents"

    @update("coding_session", ReportSession, "Sent by a turn of a coding agent: it begins, or has a session.")
    def coding_session(self, message: ReportSession) -> dict[str, Any]:
        """Sent by a turn of a coding agent as it begins: returns `{session, sent, process, decided}`; and before it
        sends the request, with the `session` that the agent has named, and whether it `loads` sessions.
        """
        session = self._session()
        if message.session:
            session.session, session.loads, session.sent = message.session, message.loads, True
            return {"session": session.session, "sent": True, "process": session.processes, "decided": []}
        session.processes += 1
        decided = _decided(self.execution.run, session) if session.sent else []
        return {
            "session": session.session, "sent": session.sent, "process": session.processes, "decided": decided
        }  # fmt: skip

    @update(
        "coding_permission",
        AskPermission,
        "Sent by a turn of a coding agent: may it make this call?",
        max_bytes=4 * MAX_SHOWN,
    )
    async def coding_permission(self, message: AskPermission) -> dict[str, Any]:
        """Sent by a turn of a coding agent: whether it may make this call. A step of its workflow asks a person, and
        `answer` is `allowed`, `denied`, `unanswered` (its time limit has passed), or after `hold` seconds `held`. A
        decision about the same call that the agent has not been given counts at once.
        """
        session, run = self._session(), self.execution.run
        digest = digest_of_data(message.model_dump(mode="json", exclude={"hold"}))
        step_id = next(
            (name for name, each in session.permissions.items() if each.digest == digest and not each.used), ""
        )
        if not step_id:
            step_id = self._asked(message, digest)
        try:
            await workflow.wait_condition(
                lambda: run.steps[step_id].status in DONE or bool(run.stopped),
                timeout=timedelta(seconds=message.hold) if message.hold is not None else None,
            )
        except TimeoutError:
            return {"answer": "held", "stepId": step_id}
        if run.steps[step_id].status not in DONE:
            return {"answer": "held", "stepId": step_id}
        return {"answer": _answer(run, step_id), "stepId": step_id}

    @signal("coding_given", GivenDecision, "Sent by a turn of a coding agent: it is about to be given a decision.")
    def coding_given(self, message: GivenDecision) -> None:
        """Sent by a turn of a coding agent before the agent gets a decision of `coding_permission`, which is used up by
        that: the same call asks again. One that was lost with a process before that counts in the next.
        """
        session = self._session()
        if (known := session.permissions.get(message.step_id)) is not None:
            session.permissions[message.step_id] = Permission(digest=known.digest, used=True)

    @signal("coding_tasks", ReportTasks, "Sent by a turn of a coding agent: its list of tasks.", max_bytes=AGENT_BYTES)
    def coding_tasks(self, message: ReportTasks) -> None:
        """Sent by a turn of a coding agent: its list of tasks, those that are done first."""
        session = self._session()
        session.tasks, session.done = [text[:2_000] or "-" for text in message.tasks], message.done
        self.execution.wake()

    def _session(self) -> CodingSession:
        """That of the run. Raises Refused where no coding agent is at work."""
        found = self.execution.run.known_part(CodingSession)
        if found is None or not found.agent:
            raise Refused("no coding agent works here", "NOT_ASKED")
        return found

    def _asked(self, message: AskPermission, digest: str) -> str:
        """Append the step that asks a person. One that was asked and used before says that it may have happened."""
        session, run = self._session(), self.execution.run
        args = message.args(session.agent)
        if any(each.digest == digest and _answer(run, name) == "allowed" for name, each in session.permissions.items()):
            args["again"] = "this was allowed before, and may have happened already"
        # In 1.0.0 permissions were numbered with the turns; a run that has begun so replays.
        is_named = workflow.patched("coding-agent-permissions")
        name = f"p{len(session.permissions) + 1}" if is_named else f"call_{len(run.plan.steps) + 1}"
        title = message.title or message.kind
        step = Step(
            id=name, tool=f"{TOOL}.{message.kind}", args=args, description=title[:200], approval=session.approval
        )
        session.permissions[name] = Permission(digest=digest)
        self.execution.append([step])
        self.execution.wake()
        return name


class InPlans(InRun):
    """The coding agents that work on steps of one plan."""

    feature = "coding_agents"
    of_agents = OfOne

    def in_steps(self) -> Sequence[InSteps]:
        """Steps of the tool `coding_agent`, where plans have children."""
        place = self.execution.place.sharer
        return (CodingAgents(self.execution.schedule, place),) if isinstance(place, SharedPlace) else ()


def _answer(run: Run, step_id: str) -> Answer:
    """What became of a permission that has been decided."""
    state, decision = run.steps[step_id], run.decisions.get(step_id)
    if state.status is Status.COMPLETED:
        return "allowed"
    expired = state.result is not None and state.result.code == "APPROVAL_TIMEOUT"
    return "unanswered" if expired or (decision is not None and decision.source == "timeout") else "denied"


def _decided(run: Run, session: CodingSession) -> list[str]:
    """What has been decided that the agent has not been given or told, in sentences. It is told once."""
    found = []
    for name, permission in session.permissions.items():
        if run.steps[name].status not in DONE or name in session.told:
            continue
        decision, what = run.decisions.get(name), _title(run, name)
        answer = _answer(run, name)
        if permission.used and answer == "allowed":
            continue
        session.told.append(name)
        comment = f" Comment: {decision.comment}" if decision is not None and decision.comment else ""
        found.append(_SENTENCES[answer].format(what=what) + comment)
    return found


def _title(run: Run, step_id: str) -> str:
    step = run.step_of(step_id)
    return step.description if step is not None and step.description else step_id


_SENTENCES: dict[str, str] = {
    "allowed": "Allowed meanwhile: {what}. Ask for it again, and it is allowed at once.",
    "denied": "Denied by a person: {what}. Do not do it.",
    "unanswered": "There was no answer in time about: {what}. It counts as denied for now.",
}


IN_RUN, WORKFLOWS = InPlans, ()
