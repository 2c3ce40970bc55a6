"""What an agent asks of us while it works: files, terminals, permissions; and what it tells: its text, calls and tasks.

Files go through the tools `read_file` and `write_file`, so that stamps, conflicts and records are those of any step.
A permission is asked of the agent's workflow, where a person decides. Only `allow_once` and `reject_once` are ever
selected: what is allowed for longer is up to `plan approve --remember`.
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from plansurvive.activities.tools.files import read_file, write_file
from plansurvive.activities.tools.tool import ToolContext
from plansurvive.features.coding_agents.line import Line
from plansurvive.features.coding_agents.model import (
    KINDS,
    MAX_SHOWN,
    AskPermission,
    MadeCall,
    ReportProgress,
    ReportTasks,
    RunCommand,
    cost_in,
)
from plansurvive.features.coding_agents.reported import Reported
from plansurvive.features.coding_agents.terminals import (
    OUTPUT_BYTES,
    TERMINALS,
    End,
    Terminal,
    command_line,
    end_of,
    last_of,
    written,
)
from plansurvive.plans.errors import ToolError

if TYPE_CHECKING:
    import acp
    from acp import schema

MAX_TEXT = 1_000_000
"""Characters of the agent's text that are kept, from its end."""
TASKS = 50
REPORT_SECONDS, REPORTS, REPORTED = 2.0, 50, 20
"""What the agent does is reported every two seconds, later after a fiftieth of the time so far; 20 calls at a time."""
Say = Callable[[str], None]
"""Takes the text of the agent, for `plan logs`."""


@dataclass
class _Known:
    """What is known of a tool call of the agent."""

    title: str = ""
    kind: str = "other"
    status: str = ""
    input: Any = None
    content: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    asked: bool = False
    """A person was asked about it: it is recorded as that."""

    def learn(self, told: Any) -> None:
        """Take over what an update says; what it leaves out stays."""
        self.title = told.title or self.title
        self.kind = told.kind if told.kind in KINDS else self.kind
        self.status = told.status or self.status
        self.input = self.input if told.raw_input is None else told.raw_input
        self.content = self.content if told.content is None else list(told.content)
        self.paths = self.paths if told.locations is None else [each.path for each in told.locations]


@dataclass
class Session:
    """The client side of one session; the protocol's library calls it. One for each process."""

    agent: str
    context: ToolContext
    line: Line
    hold: float | None
    has_network: bool
    """Whether its terminals have the network, as it has it."""
    say: Say
    is_replaying: bool = False
    """The agent is loading a session, and repeats what it has said before."""
    text: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    """A permission was not decided in time: the turn is to end."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    """The agent was told to end the turn: only then are its open questions answered, as the protocol wants."""
    calls: dict[str, _Known] = field(default_factory=dict)
    _terminals: dict[str, Terminal] = field(default_factory=dict)
    _waits: list[asyncio.Task[End]] = field(default_factory=list)
    _made: list[MadeCall] = field(default_factory=list)
    _tasks: ReportTasks | None = None
    """Its tasks, until they are reported."""
    _begins: int = 0
    """Terminals that wait for the beginning of their commands."""
    _tokens: int = 0
    _told: int = 0
    _cost: dict[str, float] = field(default_factory=dict)
    _told_cost: dict[str, float] = field(default_factory=dict)
    _changes: int = 0
    _reports: asyncio.Lock = field(default_factory=asyncio.Lock)

    def on_connect(self, conn: Any) -> None:
        """Called by the library."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:  # noqa: ARG002
        """What the agent tells."""
        if self.is_replaying:
            return
        match update.session_update:
            case "agent_message_chunk":
                self._said(update.content)
            case "tool_call" | "tool_call_update":
                self._called(update)
            case "plan":
                self._planned(update.entries)
            case "usage_update":
                # The tokens of its context: it has taken these at least. What it has taken in all, it says at the end.
                self._tokens = max(self._tokens, int(update.used))
                if update.cost is not None:
                    self.usage |= {"cost": update.cost.amount, "currency": update.cost.currency}
                    self._cost = cost_in(self.usage)

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **_: Any  # noqa: ARG002
    ) -> schema.RequestPermissionResponse:  # fmt: skip
        """Ask a person, by way of the agent's workflow."""
        known = self.calls.setdefault(tool_call.tool_call_id, _Known())
        known.learn(tool_call)
        known.asked = True
        allow = next((each.option_id for each in options if each.kind == "allow_once"), "")
        reject = next((each.option_id for each in options if each.kind == "reject_once"), "")
        if not allow:
            self.say(f"[denied: {known.title}: the agent offers no way to allow it once]\n")
            return _selected(reject)
        return _selected(
            allow if await self._may(_question(known, self.hold)) else "" if self.held.is_set() else reject
        )

    async def read_text_file(
        self, path: str, session_id: str, limit: int | None = None, line: int | None = None, **_: Any  # noqa: ARG002
    ) -> schema.ReadTextFileResponse:  # fmt: skip
        """Read a file as the tool `read_file` does."""
        from acp.schema import ReadTextFileResponse

        offset = max((line or 1) - 1, 0)
        content = await self._of_tool(lambda context: read_file.function(path, context, offset, limit), self.context)
        return ReadTextFileResponse(content=content)

    async def write_text_file(self, path: str, content: str, session_id: str, **_: Any) -> None:  # noqa: ARG002
        """Write a file as the tool `write_file` does; where that needs a person's approval, it is asked for."""
        try:
            await self._of_tool(lambda context: write_file.function(path, content, context), self._next())
        except _NeedsApproval as needed:
            question = AskPermission(
                kind="edit", title=f"write {path}"[:2_000], input={"path": path, "why": needed.why},
                content=[await self._diff(path, content)], paths=[path], hold=self.hold,
            )  # fmt: skip
            if not await self._may(question):
                raise _refused("a person has not allowed this change of the file") from None
            approved = self._next(approved=True)
            await self._of_tool(lambda context: write_file.function(path, content, context), approved)

    async def create_terminal(
        self, command: str, session_id: str, args: list[str] | None = None, cwd: str | None = None,  # noqa: ARG002
        env: list[schema.EnvVariable] | None = None, output_byte_limit: int | None = None, **_: Any,
    ) -> schema.CreateTerminalResponse:  # fmt: skip
        """Run a command as the tool `run_command` does, once a person or the policy allows it."""
        from acp.schema import CreateTerminalResponse

        line = command_line(command, args)
        if len(line) > MAX_SHOWN:
            raise _refused(f"the command is longer than {MAX_SHOWN:,} characters")
        if self._begins + sum(not each.done() for each in self._waits) >= TERMINALS:
            raise _refused(f"{TERMINALS} commands are running, the most at a time; end one, or wait for one to end")
        self._begins += 1
        try:
            folder = self.context.workspace.relative(cwd) if cwd else "."
            found = await self.line.command(
                RunCommand(
                    command=line,
                    cwd="" if folder == "." else folder,
                    network=self.has_network,
                    hold=self.hold,
                    env={each.name: each.value for each in env or ()},
                )
            )
        except ToolError as error:
            raise _refused(f"{error.code}: {error.message}") from None
        finally:
            self._begins -= 1
        answer, step_id = found["answer"], str(found["stepId"])
        self.say(f"[{answer}: {line[:2_000]}]\n")
        if answer == "held":
            await self._hold()
            raise _refused("the turn has ended before a person has decided")
        if answer not in ("begun", "ended"):
            await self.line.given(step_id)
            why = {"denied": "a person has denied this command"}.get(
                answer, "no person has allowed this command in time"
            )
            raise _refused(f"{why}: {found['problem']}" if found.get("problem") else why)
        limit = OUTPUT_BYTES if output_byte_limit is None else output_byte_limit
        self._waits.append(asyncio.create_task(self._ended(step_id)))
        self._terminals[step_id] = Terminal(step_id, limit, self._waits[-1])
        return CreateTerminalResponse(terminal_id=step_id)

    async def terminal_output(
        self, session_id: str, terminal_id: str, **_: Any  # noqa: ARG002
    ) -> schema.TerminalOutputResponse:  # fmt: skip
        """What a command has written so far."""
        from acp.schema import TerminalExitStatus, TerminalOutputResponse

        terminal = self._terminal(terminal_id)
        end, outputs = terminal.end, self.context.outputs
        data = b""
        if outputs is not None:
            data = await written(self.line.client, self.line.workflow_id, terminal_id, outputs.store)
        if end is not None and end.problem:
            data += f"\n[{end.problem}]\n".encode()
        text, cut = last_of(data, terminal.limit)
        status = TerminalExitStatus(**_exit(end)) if end is not None else None
        return TerminalOutputResponse(output=text, truncated=cut, exit_status=status)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **_: Any  # noqa: ARG002
    ) -> schema.WaitForTerminalExitResponse:  # fmt: skip
        """Wait for the end of a command."""
        from acp.schema import WaitForTerminalExitResponse

        end = await asyncio.shield(self._terminal(terminal_id).ends)
        return WaitForTerminalExitResponse(**_exit(end))

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:  # noqa: ARG002
        """End a command; its terminal can still be read."""
        if self._terminal(terminal_id).end is None:
            await self.line.end_command(terminal_id)

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        """End a command, and forget its terminal."""
        await self.kill_terminal(session_id, terminal_id)
        del self._terminals[terminal_id]

    async def close(self) -> None:
        """The process is gone: nothing waits for its terminals, which the workflow ends."""
        for each in self._waits:
            each.cancel()
        await asyncio.gather(*self._waits, return_exceptions=True)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """No extension of the protocol is known here."""
        from acp import RequestError

        raise RequestError.method_not_found(f"_{method}")

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignored."""

    async def reporting(self) -> None:
        """Report what the agent does, for as long as it works; the longer that is, the more seldom."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            await asyncio.sleep(report_pause(clock() - began))
            await self.report()

    async def report(self) -> None:
        """Report what the agent has done since the last report. Where it may not continue, its turn ends."""
        async with self._reports:  # the last one waits for one under way, and neither repeats nor drops what that has
            tasks, self._tasks = self._tasks, None
            if tasks is not None:
                await self.line.tasks(tasks)
            while self._made or self._tokens > self._told or self._cost != self._told_cost:
                batch, told, cost = self._made[:REPORTED], self._tokens, self._cost
                may_continue = await self.line.progress(ReportProgress(calls=batch, tokens=told, cost=cost))
                del self._made[: len(batch)]
                self._told, self._told_cost = told, cost
                if not may_continue:
                    self.held.set()

    def reported(self, command: list[str]) -> Reported:
        """What the agent, which is this command, has said of its spending."""
        at_its_end: Literal["", "at its end"] = "at its end" if "totalTokens" in self.usage else ""
        return Reported(command=command, tokens="within a turn" if self._tokens else at_its_end, cost=bool(self._cost))

    def begin(self) -> None:
        """A request is about to be sent: its answer begins."""
        self.text = ""

    async def _may(self, question: AskPermission) -> bool:
        if len(question.model_dump_json()) > MAX_SHOWN:
            self.say(f"[denied: {question.title}: it is longer than {MAX_SHOWN:,} characters]\n")
            return False
        answer = await self.line.ask(question)
        self.say(f"[{answer}: {question.title}]\n")
        if answer == "held":
            await self._hold()
        return answer == "allowed"

    async def _hold(self) -> None:
        """Nobody has decided in time: the turn is to end, and what was asked stays open until the agent is told so."""
        self.held.set()
        await self.cancelled.wait()

    def _terminal(self, terminal_id: str) -> Terminal:
        if terminal_id not in self._terminals:
            raise _refused(f"there is no terminal '{terminal_id[:200]}'")
        return self._terminals[terminal_id]

    async def _ended(self, step_id: str) -> End:
        """Wait for the end of a command; that it has ended, the agent is told with it."""
        found = await self.line.command(RunCommand(step_id=step_id, until="ended", hold=self.hold))
        if found["answer"] == "held":  # the policy asked after it had begun
            await self._hold()
            return End(None, "the turn has ended before a person has decided")
        await self.line.given(step_id)
        if found["answer"] != "ended":
            return End(None, f"{found['answer']}: {found.get('problem') or 'a person has not allowed it'}")
        outputs = self.context.outputs
        return await end_of(found, outputs.store) if outputs is not None else End(None)

    def _said(self, content: Any) -> None:
        text = getattr(content, "text", "")
        self.text = (self.text + text)[-MAX_TEXT:]
        self.say(text)

    def _called(self, update: Any) -> None:
        known = self.calls.setdefault(update.tool_call_id, _Known())
        before = known.status
        known.learn(update)
        self.context.progress(f"{known.kind}: {known.title}")
        if known.status != before and known.status in ("completed", "failed"):
            self.say(f"\n[{known.kind} {known.status}: {known.title}]\n")
            if not known.asked:
                self._made.append(_made(known))

    def _planned(self, entries: list[Any]) -> None:
        told = [entry for entry in entries if entry.content.strip()][:TASKS]
        done = sum(entry.status == "completed" for entry in told)
        if told:
            # Tasks are done in order where people see them: those that are done come first.
            ordered = sorted(told, key=lambda entry: entry.status != "completed")
            self._tasks = ReportTasks(tasks=[each.content.strip()[:300] for each in ordered], done=done)

    async def _of_tool(self, call: Callable[[ToolContext], Any], context: ToolContext) -> Any:
        try:
            return await asyncio.to_thread(call, context)
        except ToolError as error:
            if error.code == "APPROVAL_REQUIRED":
                raise _NeedsApproval(error.message) from None
            raise _refused(context.masked(f"{error.code}: {error.message}")) from None

    def _next(self, *, approved: bool = False) -> ToolContext:
        """The context of a change of a file: a key of its own, and what the turn has read and written so far."""
        self._changes += 1
        call, context = self.context.call, self.context
        stamps = {
            **call.stamps,
            **context.files_read,
            **{name: each for name, each in context.files_written.items() if each},
        }
        key = f"{call.key}.{self.line.process}.{self._changes}"
        return replace(context, call=call.model_copy(update={"key": key, "stamps": stamps, "approved": approved}))

    async def _diff(self, path: str, content: str) -> str:
        def now() -> str:
            with self.context.workspace.file(path) as place:
                from plansurvive.activities.workspace.contents import read_text

                return read_text(place)

        try:
            before = await asyncio.to_thread(now)
        except ToolError:
            before = ""
        return _unified(path, before, content)


def report_pause(elapsed: float) -> float:
    """Seconds until the next report of a turn that has lasted so long: a day has fewer than 400 reports."""
    return max(REPORT_SECONDS, elapsed / REPORTS)


class _NeedsApproval(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _refused(why: str) -> acp.RequestError:
    from acp import RequestError

    return RequestError(-32_603, why)


def _exit(end: End) -> dict[str, Any]:
    """The end of a command in the protocol's fields: without an exit code, something has ended it."""
    return {"exit_code": end.code, "signal": None if end.code is not None else "SIGKILL"}


def _made(known: _Known) -> MadeCall:
    """A call of an own tool of the agent that has ended, short."""
    given = "" if known.input is None else json.dumps(known.input, ensure_ascii=False, default=str)
    return MadeCall.model_validate(
        {
            "kind": known.kind, "title": known.title[:300], "input": given[:300], "ok": known.status == "completed",
            "paths": [path[:300] for path in known.paths[:5]], "began": known.began,
        }
    )  # fmt: skip


def _selected(option: str) -> schema.RequestPermissionResponse:
    """The answer that selects an option; without one, the request is cancelled."""
    from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

    outcome = AllowedOutcome(outcome="selected", option_id=option) if option else DeniedOutcome(outcome="cancelled")
    return RequestPermissionResponse(outcome=outcome)


def _question(known: _Known, hold: float | None) -> AskPermission:
    return AskPermission.model_validate(
        {
            "kind": known.kind,
            "title": known.title[:2_000],
            "input": json.loads(json.dumps(known.input, default=str)),
            "content": [text for each in known.content[:200] if (text := _shown(each))],
            "paths": known.paths[:1_000],
            "hold": hold,
        }
    )


def _shown(content: Any) -> str:
    """A text or a diff that an agent shows with a tool call."""
    if content.type == "diff":
        return _unified(content.path, content.old_text or "", content.new_text)
    return cast(str, getattr(content.content, "text", "")) if content.type == "content" else ""


def _unified(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(lines)
