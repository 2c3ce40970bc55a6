"""A coding agent's session as its workflow keeps it, and the messages between the workflow and the agent's turn.

The session belongs to the workflow: a turn asks for it when it begins, and reports it before it sends the request. So
a request is sent once per session, whatever is killed.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from plansurvive.plans.model import ApprovalRule, Retry, ToolSpec, Value
from plansurvive.plans.model.parts import Part
from plansurvive.plans.usage import MAX_REPORTED, Costs

COMMAND = "run_command"
"""The tool whose calls are the terminals of an agent."""
COMMAND_SECONDS = 3_600.0
"""What a command of an agent may take: one that a person allows after the turn is not ended with it."""
TOOL = "coding_agent"
"""The tool of plans, and in the agent's own workflow the activity that is one turn of it."""
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
"""What the protocol calls the kinds of tool calls. A permission for one is a step of the tool `coding_agent.KIND`."""
HOLD = 600.0
"""Seconds that an agent's process waits for a person, unless agents.toml says otherwise."""
MAX_SHOWN = 200_000
"""Characters of what a person is shown of a tool call that asks for permission. A longer one is refused."""
LONGEST = 86_400.0
"""Seconds that a turn may take, if the step sets no limit."""

Answer = Literal["allowed", "denied", "unanswered", "held"]
"""What became of a permission: `unanswered`: its time limit has passed; `held`: nobody has decided while it waited."""


class Permission(Value):
    """A permission that the agent has asked for."""

    digest: str = Field(description="Of the call: kind, title, input, content.")
    used: bool = Field(default=False, description="The agent has been given the decision.")


class MadeCall(Value):
    """A call of one of the agent's own tools, which has ended."""

    kind: Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
    title: str = Field(default="", max_length=300)
    input: str = Field(default="", max_length=300, description="What it was called with, as text, cut.")
    paths: list[Annotated[str, Field(max_length=300)]] = Field(default_factory=list, max_length=5)
    ok: bool = Field(default=True, strict=True)
    began: AwareDatetime


class CodingSession(Part):
    """The session of one coding agent."""

    feature: ClassVar[str] = "coding_agents"

    agent: str = Field(default="", description="Its name in agents.toml.")
    session: str = Field(default="", description="The id of the session, once the agent has named it.")
    loads: bool = Field(default=False, description="The agent can load a session in another process.")
    sent: bool = Field(default=False, description="The request was sent, or may have been.")
    arrived: bool = Field(default=False, description="It was: the agent has done something since.")
    processes: int = Field(default=0, description="Processes of the agent so far.")
    permissions: dict[str, Permission] = Field(default_factory=dict, description="By step of the agent's workflow.")
    approval: ApprovalRule | None = Field(default=None, description="Of the plan's step: for its permissions.")
    timeout: float | None = Field(default=None, description="Of the plan's step: seconds that one turn may take.")
    told: list[str] = Field(default_factory=list, description="Permissions of which the agent knows what became.")
    commands: dict[str, str] = Field(default_factory=dict, description="Digests of its commands, by step.")
    made: list[MadeCall] = Field(default_factory=list, description="Calls of its own that its plan does not know yet.")
    told_calls: int = Field(default=0, description="How many the plan knows.")
    tokens: int = Field(default=0, description="Tokens that it says its session has taken so far, in this turn.")
    counted: int = Field(default=0, description="Those of them that are in the ledger.")
    cost: Costs = Field(default_factory=dict, description="What it says that its session has cost, in all its turns.")
    paid: Costs = Field(default_factory=dict, description="What of that is in the ledger, or in that of another step.")
    spending: Literal["", "asked", "granted", "refused"] = Field(
        default="", description="May it continue within the turn?"
    )
    over: str = Field(default="", description="The last turn whose commands were ended with it.")
    value: dict[str, Any] = Field(default_factory=dict, description="What the last turn returned.")
    tasks: list[str] = Field(default_factory=list, description="Its task list, those that are done first.")
    done: int = Field(default=0, description="How many of them are done.")
    messages: list[str] = Field(default_factory=list, description="To the agent, which no process has been given.")
    given: list[str] = Field(
        default_factory=list, description="What its process was given in sentences, and may have died with."
    )


def cost_in(usage: Any) -> dict[str, float]:
    """By currency, the cost of the session in the `usage` of a turn's value; empty where it says none."""
    found = usage.get("cost") if isinstance(usage, dict) else None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= MAX_REPORTED:
        return {}
    return {str(usage.get("currency") or "")[:20]: float(found)}


def owes(session: CodingSession) -> bool:
    """Whether it has cost anything that is in no ledger yet."""
    return any(amount != session.paid.get(currency) for currency, amount in session.cost.items())


def unpaid(session: CodingSession) -> dict[str, float]:
    """What the session has cost that is in no ledger yet; from now on it is."""
    found = dict[str, float]()
    for currency, amount in session.cost.items():
        before = session.paid.get(currency, 0.0)
        # Less than before: another process of the agent has begun to count.
        rest = amount if amount < before else round(amount - before, 9)
        if rest:
            found[currency] = rest
    session.paid = session.paid | session.cost
    return found


class ReportSession(Value):
    """Sent by a turn: it has begun, and asks for the session; or with `session`: the agent has named one."""

    EXAMPLE: ClassVar[str] = '{"session": "abc", "loads": true}'

    session: str = Field(default="", max_length=2_000, description="Empty: which one is there?")
    loads: bool = Field(default=False, strict=True)


class AskPermission(Value):
    """Sent by a turn: the agent asks whether it may make a call."""

    EXAMPLE: ClassVar[str] = '{"kind": "execute", "title": "make test", "hold": 600}'

    kind: Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
    title: str = Field(default="", max_length=2_000)
    input: Any = Field(default=None, description="What the agent says that it will call its tool with.")
    content: list[str] = Field(default_factory=list, max_length=200, description="Texts and diffs that it shows.")
    paths: list[str] = Field(default_factory=list, max_length=1_000, description="Files that it names.")
    hold: float | None = Field(default=None, gt=0, description="Seconds to wait for a person; none: without limit.")

    def args(self, agent: str) -> dict[str, Any]:
        """What a person is asked."""
        shown = {"title": self.title, "input": self.input, "content": self.content, "paths": self.paths}
        return {"agent": agent} | {name: value for name, value in shown.items() if value not in (None, "", [])}


class ReportProgress(Value):
    """Sent by a turn, every two seconds at most: calls that have ended, what the session has taken and cost."""

    EXAMPLE: ClassVar[str] = '{"tokens": 1200}'

    calls: list[MadeCall] = Field(default_factory=list, max_length=20)
    tokens: int = Field(default=0, ge=0, le=10**12)
    cost: Costs = Field(default_factory=dict)


class RunCommand(Value):
    """Sent by a turn: the agent opens a terminal; or with `stepId`: has that command begun, or ended?"""

    EXAMPLE: ClassVar[str] = '{"command": "make test", "hold": 600}'

    command: str = Field(default="", max_length=MAX_SHOWN)
    cwd: str = Field(default="", max_length=4_000, description="Working directory; empty: the workspace.")
    env: dict[str, str] = Field(default_factory=dict, max_length=200)
    network: bool = Field(default=False, strict=True)
    hold: float | None = Field(default=None, gt=0, description="Seconds to wait for a person; none: without limit.")
    step_id: str = Field(default="", max_length=200)
    until: Literal["begun", "ended"] = "begun"

    def args(self) -> dict[str, Any]:
        """What the tool is called with."""
        more = {"cwd": self.cwd, "env": self.env, "network": self.network}
        own = {"command": self.command, "timeout": COMMAND_SECONDS, "allowFailure": True}
        return own | {name: value for name, value in more.items() if value}


class EndCommand(Value):
    """Sent by a turn: the agent needs a command no longer."""

    EXAMPLE: ClassVar[str] = '{"stepId": "p2"}'

    step_id: str = Field(min_length=1, max_length=200)


class GivenDecision(Value):
    """Sent by a turn: the agent is about to be given this decision, which is used up by that."""

    EXAMPLE: ClassVar[str] = '{"stepId": "call_2"}'

    step_id: str = Field(min_length=1, max_length=200)


class ReportTasks(Value):
    """Sent by a turn: the agent's task list."""

    EXAMPLE: ClassVar[str] = '{"tasks": ["Write the test"], "done": 0}'

    tasks: list[str] = Field(min_length=1, max_length=50)
    done: int = Field(default=0, ge=0, le=50)


def turn_spec(judged: bool) -> ToolSpec:
    """One turn as a tool of the agent's own workflow. `judged`: the worker has a policy."""
    return ToolSpec(
        name=TOOL,
        description="One turn of a coding agent.",
        args_schema={"type": "object"},
        retry=Retry(attempts=3, delay=1.0, factor=2.0),
        timeout=LONGEST,
        judged=judged,
    )


def permission_specs(judged: bool, as_asked: bool = True) -> dict[str, ToolSpec]:
    """The tools whose steps ask for permissions; they do nothing else. `as_asked`: and take no other arguments."""
    return {
        name: ToolSpec(
            name=name,
            description="Something that a coding agent asks to do.",
            args_schema={"type": "object"},
            approval="always",
            effect="pure",
            outside=False,
            judged=judged,
            as_asked=as_asked,
        )
        for name in (f"{TOOL}.{kind}" for kind in KINDS)
    }
