"""Coding agents in runs: steps of a plan that are some; and in the run of one, what its turns report and ask."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow

from plansurvive.features.children.place import SharedPlace
from plansurvive.features.coding_agents.messages import TellAgent
from plansurvive.features.coding_agents.model import (
    COMMAND,
    MAX_SHOWN,
    TOOL,
    Answer,
    AskPermission,
    CodingSession,
    EndCommand,
    GivenDecision,
    Permission,
    ReportProgress,
    ReportSession,
    ReportTasks,
    RunCommand,
)
from plansurvive.features.coding_agents.steps import CodingAgents
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.approvals import is_changed
from plansurvive.plans.execution.messages import AGENT_BYTES
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import DONE, Run, Status
from plansurvive.plans.run.step_call import digest_of_data
from plansurvive.plans.text.call_titles import command_title
from plansurvive.plans.text.safe_text import line
from plansurvive.workflows.feature import InRun, signal, update
from plansurvive.workflows.in_steps import InSteps
from plansurvive.workflows.outcomes import skipped
from plansurvive.workflows.waits import holds_within

ANSWER_TIME = timedelta(seconds=10)
"""What the plan has to say whether the agent may spend more, before the turn ends and waits for a person."""

MESSAGES, MAX_MESSAGE = 20, 20_000
"""How many wait for an agent at most, and the characters of one."""
FULL_EVENTS, FULL_BYTES = 15_000, 20_000_000
"""Of the history of a workflow: at most so much before a turn is ended, so that the workflow continues as new. The
server ends one at 51,200 events, 50 MB or 2,000 updates, of which each takes ten events and more."""


class OfOne(InRun):
    """What the turns of a coding agent report to its workflow, and ask it."""

    feature = "coding_agents"

    @update("coding_session", ReportSession, "Sent by a turn of a coding agent: it begins, or has a session.")
    async def coding_session(self, message: ReportSession) -> dict[str, Any]:
        """Sent by a turn of a coding agent as it begins: returns `{session, sent, arrived, process, decided}`; and
        before it sends the request, with the `session` that the agent has named, and whether it `loads` sessions.
        """
        session = self._session()
        if message.session:
            session.session, session.loads, session.sent = message.session, message.loads, True
            return {"session": session.session, "sent": True, "process": session.processes, "decided": []}
        session.processes += 1
        if running := self._end_commands(session):  # of a process before, which was lost
            run = self.execution.run
            await workflow.wait_condition(lambda: all(run.steps[name].status in DONE for name in running))
        if session.sent:
            session.given += [*_decided(self.execution.run, session), *session.messages]
            session.messages = []
        return {
            "session": session.session, "sent": session.sent, "arrived": session.arrived,
            "process": session.processes, "decided": session.given,
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
        session, run = self._heard(), self.execution.run
        if self._is_full(session):
            return {"answer": "held", "stepId": ""}
        digest = digest_of_data(message.model_dump(mode="json", exclude={"hold"}))
        step_id = next(
            (name for name, each in session.permissions.items() if each.digest == digest and not each.used), ""
        )
        if not step_id:
            step_id = self._asked(message, digest)
        in_time = await holds_within(
            lambda: run.steps[step_id].status in DONE or bool(run.stopped or session.messages),
            timedelta(seconds=message.hold) if message.hold is not None else None,
        )
        if not in_time or session.messages or run.steps[step_id].status not in DONE:
            return {"answer": "held", "stepId": step_id}
        return {"answer": _answer(run, step_id), "stepId": step_id}

    @update(
        "coding_command",
        RunCommand,
        "Sent by a turn of a coding agent: run this command in a terminal.",
        max_bytes=4 * MAX_SHOWN,
    )
    async def coding_command(self, message: RunCommand) -> dict[str, Any]:
        """Sent by a turn of a coding agent: a terminal is opened, a step of its workflow that calls `run_command`.
        Returns when it has begun, or with `until` when it has ended: `answer` is `begun`, `ended` (with `value`,
        `large` or `problem`), `denied`, `unanswered`, or `held` where no person has decided for `hold` seconds.
        """
        session, run = self._heard(), self.execution.run
        if not message.step_id and self._is_full(session):
            return {"answer": "held", "stepId": ""}
        step_id = message.step_id or self._commanded(message)
        if step_id not in session.commands:
            raise Refused(f"there is no command '{step_id}'", "NOT_ASKED")

        def is_there() -> bool:
            status = run.steps[step_id].status
            has_begun = message.until == "begun" and status is Status.RUNNING
            return has_begun or status in DONE or bool(run.stopped)

        while not is_there():
            asks = bool(run.steps[step_id].awaiting)
            patience = timedelta(seconds=message.hold) if asks and message.hold is not None else None
            in_time = await holds_within(
                lambda asks=asks: is_there() or bool(run.steps[step_id].awaiting) != asks,  # type: ignore[misc]
                patience,
            )
            if not in_time:
                return {"answer": "held", "stepId": step_id}
        if session.messages and run.steps[step_id].status is Status.SKIPPED:
            return {"answer": "held", "stepId": step_id}
        return _command_answer(run, step_id)

    @signal("coding_command_end", EndCommand, "Sent by a turn of a coding agent: end this command.")
    def coding_command_end(self, message: EndCommand) -> None:
        """Sent by a turn of a coding agent: its terminal was killed or released, so the command is cancelled."""
        if message.step_id in self._session().commands:
            self.execution.cancel_step(message.step_id)

    @signal("coding_given", GivenDecision, "Sent by a turn of a coding agent: it is about to be given a decision.")
    def coding_given(self, message: GivenDecision) -> None:
        """Sent by a turn of a coding agent before the agent gets a decision of `coding_permission`, which is used up by
        that: the same call asks again. One that was lost with a process before that counts in the next.
        """
        session = self._session()
        if message.step_id in session.commands and message.step_id not in session.told:
            session.told.append(message.step_id)
        if (known := session.permissions.get(message.step_id)) is not None:
            session.permissions[message.step_id] = Permission(digest=known.digest, used=True)

    @update(
        "coding_progress", ReportProgress, "Sent by a turn of a coding agent while it works.", max_bytes=AGENT_BYTES
    )
    async def coding_progress(self, message: ReportProgress) -> dict[str, Any]:
        """Sent by a turn of a coding agent while it works: calls of its own tools that have ended, what its
        session has taken and cost. Returns `{go: true}`, or false where the plan's budget does not let it continue now.
        """
        session = self._heard()
        session.made += message.calls
        if message.tokens > session.tokens:
            session.tokens, session.spending = message.tokens, ""
        if message.cost and message.cost != session.cost:
            session.cost, session.spending = message.cost, ""
        self.execution.wake()
        # The workflow's loop counts the tokens and asks the plan; a person may have to decide there.
        if not await holds_within(lambda: session.spending in ("granted", "refused"), ANSWER_TIME):
            return {"go": False}
        return {"go": session.spending == "granted" and not session.messages and not self._is_full(session)}

    @signal("coding_tasks", ReportTasks, "Sent by a turn of a coding agent: its list of tasks.", max_bytes=AGENT_BYTES)
    def coding_tasks(self, message: ReportTasks) -> None:
        """Sent by a turn of a coding agent: its list of tasks, those that are done first."""
        session = self._heard()
        session.tasks, session.done = [text[:2_000] or "-" for text in message.tasks], message.done
        self.execution.wake()

    @update("event", TellAgent, 'Send the agent a message: {"name": "message", "data": "..."}', signed=True)
    def event(self, message: TellAgent) -> dict[str, Any]:
        """A message to the agent. Its turn ends at once where it awaits a decision, which is withdrawn, else where it
        next asks for a permission or reports a call, or by itself. The next one continues with the message. Returns
        `{text}`.
        """
        session, run, text = self._session(), self.execution.run, message.data
        if message.name != "message" or not isinstance(text, str) or not 0 < len(text) <= MAX_MESSAGE:
            how = f"the event `message`, whose data is a text of at most {MAX_MESSAGE:,} characters"
            raise Refused(f"a coding agent takes {how}: --data '\"Keep the old name.\"'", "BAD_MESSAGE")
        if not session.sent:
            raise Refused("the agent has not begun yet; send it the message when it works", "NOT_ASKED")
        if not session.loads:
            why = f"the coding agent '{session.agent}' cannot continue a session after an interruption"
            raise Refused(f"{why}, so it takes no messages; cancel the plan, and change its prompt", "NOT_ASKED")
        if len(session.messages) >= MESSAGES:
            raise Refused(f"{MESSAGES} messages wait for the agent already; send the rest later", "NOT_ASKED")
        session.messages.append(f"A message{f' of {line(message.by)}' if message.by else ''}: {text}")
        run.note(LogKind.EVENT, "a message to the agent arrived", workflow.now(), subject=message.name)
        self._withdraw(session, "a message to the coding agent has interrupted it; it may ask again")
        self.execution.wake()
        return {"text": "the agent gets the message when it next asks or reports something, or ends its turn"}

    def in_steps(self) -> Sequence[InSteps]:
        """What ends the commands of a turn with it."""
        return (_Commands(self),)

    def _is_full(self, session: CodingSession) -> bool:
        """Whether the turn is to end, as the workflow cannot continue as new within it; the next one continues the
        session, so this holds for agents that load theirs alone.
        """
        info, limit = workflow.info(), self.execution.run.options.history_limit or FULL_EVENTS
        is_full = info.get_current_history_length() >= limit or info.get_current_history_size() >= FULL_BYTES
        return session.loads and is_full and workflow.patched("coding-agent-full")

    def turn_is_over(self) -> None:
        """Once a turn of the agent has ended, end the commands that it has left running."""
        run = self.execution.run
        session = run.known_part(CodingSession)
        if session is None or not (session.commands or session.permissions):
            return
        last = next((step.id for step in reversed(run.plan.steps) if step.tool == TOOL), "")
        if last and last != session.over and run.steps[last].status in DONE:
            session.over = last
            self._end_commands(session)
            if run.steps[last].status is Status.FAILED and workflow.patched("coding-agent-lost"):
                self._withdraw(session, "the coding agent that asked for it has ended")

    def _withdraw(self, session: CodingSession, why: str) -> None:
        """People need not decide what the agent has asked for: no turn follows, or one that may ask again."""
        run, now = self.execution.run, workflow.now()
        for name in [each for each in (*session.permissions, *session.commands) if run.steps[each].awaiting]:
            if (known := session.permissions.get(name)) is not None:
                session.permissions[name] = Permission(digest=known.digest, used=True)
            session.told.append(name)
            self.execution.conclude(name, skipped(why, now, code="CANCELLED"))

    def _end_commands(self, session: CodingSession) -> list[str]:
        """Cancel the commands that run; returns their steps."""
        running = [name for name in session.commands if self.execution.run.steps[name].status is Status.RUNNING]
        for name in running:
            self.execution.cancel_step(name)
        return running

    def _commanded(self, message: RunCommand) -> str:
        """Append the step of a command, unless one for the same call still awaits a decision. Raises Refused."""
        session, run = self._session(), self.execution.run
        if COMMAND not in run.facts.tools:
            raise Refused(f"the worker that the plan was begun with offers no {COMMAND}", "UNKNOWN_TOOL")
        digest = digest_of_data(message.args())
        for name, known in session.commands.items():
            if known == digest and run.steps[name].awaiting:
                return name
        name = self._next_name(session)
        title = command_title(message.command)
        session.commands[name] = digest
        # At most once, whatever is killed: the agent decides whether to ask for it again.
        step = Step(
            id=name, tool=COMMAND, args=message.args(), description=title, approval=session.approval, repeatable=False
        )
        self.execution.append([step])
        self.execution.wake()
        return name

    @staticmethod
    def _next_name(session: CodingSession) -> str:
        return f"p{len(session.permissions) + len(session.commands) + 1}"

    def _session(self) -> CodingSession:
        """That of the run. Raises Refused where no coding agent is at work."""
        found = self.execution.run.known_part(CodingSession)
        if found is None or not found.agent:
            raise Refused("no coding agent works here", "NOT_ASKED")
        return found

    def _heard(self) -> CodingSession:
        """The session, of which the agent's process lets us hear: so it has what it was sent."""
        session = self._session()
        session.arrived, session.given = True, []
        return session

    def _asked(self, message: AskPermission, digest: str) -> str:
        """Append the step that asks a person. One that was asked and used before says that it may have happened."""
        session, run = self._session(), self.execution.run
        args = message.args(session.agent)
        if any(each.digest == digest and _answer(run, name) == "allowed" for name, each in session.permissions.items()):
            args["again"] = "this was allowed before, and may have happened already"
        # In 1.0.0 permissions were numbered with the turns; a run that has begun so replays.
        is_named = workflow.patched("coding-agent-permissions")
        name = self._next_name(session) if is_named else f"call_{len(run.plan.steps) + 1}"
        title = message.title or message.kind
        step = Step(
            id=name, tool=f"{TOOL}.{message.kind}", args=args, description=title[:200], approval=session.approval
        )
        session.permissions[name] = Permission(digest=digest)
        self.execution.append([step])
        self.execution.wake()
        return name


class _Commands(InSteps):
    """Looks at the commands of one coding agent once a turn of its workflow."""

    def __init__(self, of: OfOne) -> None:
        self._of = of

    def turn(self) -> None:
        """What has finished is settled: the agent's turn may have."""
        self._of.turn_is_over()


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
        # The agent makes the call itself, as it asked: who approved another one has not allowed this one.
        return "denied" if is_changed(run, step_id) else "allowed"
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
        found.append(_SENTENCES[answer].format(what=what) + _instead(run, name) + comment)
    for name in session.commands:
        if run.steps[name].status in DONE and name not in session.told:
            session.told.append(name)
            found.append(_of_command(run, name))
    return found


def _instead(run: Run, step_id: str) -> str:
    """The call that a person has approved in place of the one that was asked for; empty if there is none."""
    if run.steps[step_id].status is not Status.COMPLETED or not is_changed(run, step_id):
        return ""
    step = run.step_of(step_id)
    args = run.args_of(step) if step is not None else {}
    return f" Allowed instead, if you ask for it: {json.dumps(args, ensure_ascii=False)[:2_000]}"


def _command_answer(run: Run, step_id: str) -> dict[str, Any]:
    """What a turn is told of a command that has begun or ended."""
    state, answer = run.steps[step_id], {"stepId": step_id}
    if state.status not in DONE:
        return answer | {"answer": "begun" if state.status is Status.RUNNING else "held"}
    result = state.result
    if state.status is Status.SKIPPED or result is None:
        decision = run.decisions.get(step_id)
        return answer | {"answer": _answer(run, step_id), "problem": decision.comment if decision is not None else ""}
    if not result.ok:
        return answer | {"answer": "ended", "problem": f"{result.code}: {result.error}"[:2_000]}
    if result.large is not None:
        return answer | {"answer": "ended", "large": result.large.model_dump(mode="json")}
    value = result.value if isinstance(result.value, dict) else {}
    return answer | {"answer": "ended", "value": {"exitCode": value.get("exitCode")}}


def _of_command(run: Run, step_id: str) -> str:
    """What became of a command whose end the agent has not been given."""
    state, what = run.steps[step_id], _title(run, step_id)
    if state.status is Status.SKIPPED or state.result is None:
        return _SENTENCES[_answer(run, step_id)].format(what=what)
    if not state.result.ok:
        how = f"{state.result.code}: {state.result.error}"[:1_000]
        return f"This command did not end by itself, and what it did may be half done: {what} ({how})."
    value = state.result.value if isinstance(state.result.value, dict) else {}
    text = "".join(each for name in ("stdout", "stderr") if isinstance(each := value.get(name), str))[-2_000:]
    ended = f" with exit code {value['exitCode']}" if "exitCode" in value else ""
    return f"Run meanwhile: {what}. It ended{ended}." + (f" The end of its output:\n{text}" if text else "")


def _title(run: Run, step_id: str) -> str:
    step = run.step_of(step_id)
    return (run.description_of(step) if step is not None else "") or step_id


_SENTENCES: dict[str, str] = {
    "allowed": "Allowed meanwhile: {what}. Ask for it again, and it is allowed at once.",
    "denied": "Denied by a person: {what}. Do not do it.",
    "unanswered": "There was no answer in time about: {what}. It counts as denied for now.",
}


IN_RUN, WORKFLOWS = InPlans, ()
