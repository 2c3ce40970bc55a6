"""One turn of a coding agent: an attempt of the tool `coding_agent` in the agent's workflow, which owns its process.

The order matters: the session is reported before the request is sent. Killed before that, the next attempt begins a new
session; killed after it, it loads the session and asks the agent to continue, and the request is not sent again. An
agent that has done nothing yet is asked to continue with the request in the same text, as it may not have arrived.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import BaseModel
from temporalio import activity
from temporalio.client import Client

from plansurvive.activities.feature import MoreTools
from plansurvive.activities.outputs.recorder import Recorder
from plansurvive.activities.sandbox.process import Running
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.features.coding_agents.agents_file import CodingAgent, agent_of
from plansurvive.features.coding_agents.line import Line, State
from plansurvive.features.coding_agents.model import TOOL, permission_specs, turn_spec
from plansurvive.features.coding_agents.program import END_SECONDS, homes_of, running, unavailable
from plansurvive.features.coding_agents.reported import Reported, note
from plansurvive.features.coding_agents.session import Session
from plansurvive.plans.activity_io import STDERR, STDOUT
from plansurvive.plans.definition.output_schema import form_problem, value_of
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.base.extras import install_line
from plansurvive.runtime.settings import Settings

if TYPE_CHECKING:
    from acp.client.connection import ClientSideConnection

LINE_BYTES = 50 * 1024 * 1024
"""What the library reads ahead of the agent's output."""
START_SECONDS = 120.0
"""Until the agent has answered the first two messages: some download themselves first."""
CANCEL_SECONDS = 20.0
"""What an agent has to end a turn that was cancelled, before its process is ended."""
ANSWERS = 3
"""How often an agent is asked for an answer that fits the schema."""
TEXT_CHARACTERS = 20_000
"""Of the agent's text in the value, from its end; all of it is in `plan logs`."""
CONTINUE = "Continue the interrupted request."
IF_LOST = "If it has not reached you, this is it; begin with it then:"
"""To an agent that has done nothing yet: its process may have been killed before the request was sent."""
T = TypeVar("T")


class _NoModel(BaseModel):
    """In place of the model of a function's arguments: the workflow alone makes these calls."""


@dataclass(frozen=True)
class _Given(Tool):
    """A tool whose function takes the arguments as they are."""

    def keywords(self, args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """The arguments and the context."""
        return {"args": dict(args), "context": context}


@dataclass
class Turns(MoreTools):
    """The tools that the workflows of coding agents call. No plan sees them."""

    client: Client
    settings: Settings
    _tools: dict[str, Tool] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Make the tools: the turn, and those whose steps ask for permission."""
        self._tools = {TOOL: _Given(turn_spec(judged=False), self._turn, _NoModel)}
        for name, spec in permission_specs(judged=False).items():
            self._tools[name] = _Given(spec, _permitted, _NoModel, touches_files=False)

    @property
    def specs(self) -> Mapping[str, ToolSpec]:
        """None for plans."""
        return {}

    @property
    def earlier(self) -> Mapping[str, ToolSpec]:
        """None."""
        return {}

    def tool(self, name: str) -> Tool | None:
        """The turn, or what asks for a permission."""
        return self._tools.get(name)

    async def _turn(self, args: dict[str, Any], context: ToolContext) -> Any:
        name = str(args["agent"])
        agent = agent_of(name, self.settings)
        await _loaded(name)
        line = Line(self.client, activity.info().workflow_id or "")
        state = await line.begin()
        async with context.recorder(is_value=False) as recorder:

            def refused(text: str) -> None:
                context.warn(f"the coding agent '{name}' got {text}")
                recorder.add(STDOUT, f"\n[{text}]\n".encode("utf-8", "replace"))

            homes = homes_of(self.settings)
            async with running(name, agent, context, homes, refused) as program:
                turn = _Turn(name, agent, context, line, recorder, program, homes.of(name, agent))
                value, seen = await _talk(turn, state, args)
        await asyncio.to_thread(note, name, seen, self.settings)
        return value


async def _loaded(name: str) -> None:
    """Import the library, in a thread: on a busy machine it takes longer than a worker may be silent."""
    try:
        await asyncio.to_thread(import_module, "acp")
    except ImportError:
        text = "this worker lacks the library for it; run: " + install_line("plansurvive[acp]")
        raise unavailable(name, text) from None


async def _permitted(args: dict[str, Any], context: ToolContext) -> dict[str, Any]:  # noqa: ARG001
    """A person, or the policy, has allowed it: the agent does it."""
    return {"allowed": True}


@dataclass
class _Turn:
    name: str
    agent: CodingAgent
    context: ToolContext
    line: Line
    recorder: Recorder
    program: Running
    home: str


async def _talk(turn: _Turn, state: State, args: Mapping[str, Any]) -> tuple[dict[str, Any], Reported]:
    """Returns the value of the turn, and what the agent has reported in it."""
    from acp import RequestError

    try:
        async with _connected(turn) as (connection, session):
            value = await _worked(turn, connection, session, state, args)
            return value, session.reported(turn.agent.command)
    except RequestError as error:
        data = f" {json.dumps(error.data, default=str)[:500]}" if error.data else ""
        text = turn.context.masked(f"{error}{data}")
        if error.code == -32_000:
            hint = "give it its key in `env`, or log in once with its own command, with HOME set to its home"
            raise ToolError("AGENT_LOGIN", f"the coding agent '{turn.name}' is not logged in: {text}; {hint}") from None
        raise ToolError("AGENT_FAILED", f"the coding agent '{turn.name}' answered with an error: {text}") from None
    except ConnectionError:
        said = turn.recorder.tail(STDERR).strip()[-1_000:]
        why = f": {turn.context.masked(said)}" if said else "; `plan logs` has what it has written"
        text = f"the coding agent '{turn.name}' ended in the middle of its work{why}"
        raise ToolError("AGENT_ENDED", text, retryable=True) from None


@asynccontextmanager
async def _connected(turn: _Turn) -> AsyncIterator[tuple[ClientSideConnection, Session]]:
    """The connection to the agent's process, as long as the block lasts."""
    from acp import connect_to_agent

    def say(text: str) -> None:
        turn.recorder.add(STDOUT, text.encode("utf-8", "replace"))

    reader = asyncio.StreamReader(limit=LINE_BYTES)
    has_network = turn.agent.has_network
    session = Session(turn.name, turn.context, turn.line, turn.agent.hold, has_network, say)
    pumps = [
        asyncio.create_task(_fed(turn.program.stdout, reader)),
        asyncio.create_task(_recorded(turn.program.stderr, turn.recorder)),
    ]
    connection = connect_to_agent(cast("Any", session), turn.program.stdin, reader)
    pumps.append(asyncio.create_task(session.reporting()))
    try:
        yield connection, session
    finally:
        with suppress(Exception):  # whatever the library raises about a connection that is lost
            await connection.close()
        await session.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _worked(
    turn: _Turn, connection: ClientSideConnection, session: Session, state: State, args: Mapping[str, Any]
) -> dict[str, Any]:
    way = await _in_time(turn, _introduced(turn, connection))
    loads = way is not Way.NONE
    if not loads:
        session.hold = None  # its process is all that knows the session: it is held as long as the step may take
    name = await _in_time(turn, _opened(turn, connection, session, state, way))
    schema, text = args.get("schema"), str(args["prompt"])
    if schema:
        text += (
            f"\n\nThe final answer must be JSON that conforms to this schema, and nothing else:\n{json.dumps(schema)}"
        )
    if state.sent:
        again = CONTINUE if state.arrived else f"{CONTINUE} {IF_LOST}\n\n{text}"
        text = "\n\n".join([again, *state.decided])
    await turn.line.report(name, loads=loads)
    if opening := turn.agent.opening(name, turn.home, turn.context.workspace.root):
        session.say(f"[to open its session, once the step has ended: {opening}]\n")
    turn.context.fault("coding_agent_sending")
    for _ in range(ANSWERS):
        reason = await _prompted(connection, session, name, text)
        problem = _problem(schema, session.text) if schema and reason == "end_turn" else ""
        if not problem:
            break
        text = f"The final answer does not conform to the schema: {problem}. Answer with the corrected JSON alone."
    else:
        raise ToolError(
            "AGENT_FAILED", f"the coding agent '{turn.name}' gave no answer that fits the schema: {problem}"
        )
    await session.report()
    value = {
        "text": session.text[-TEXT_CHARACTERS:], "sessionId": name, "stopReason": reason, "usage": session.usage,
        "held": session.cancelled.is_set(), "calls": len(session.calls), **({"open": opening} if opening else {}),
    }  # fmt: skip
    if schema and reason == "end_turn":
        value["answer"] = value_of(_json_of(session.text))
    return value


class Way(Enum):
    """How an agent can be given a session of an earlier process."""

    RESUME = auto()
    """It continues, and repeats nothing of it."""
    LOAD = auto()
    """It repeats it all, as it was."""
    NONE = auto()


async def _introduced(turn: _Turn, connection: ClientSideConnection) -> Way:
    """Agree on the protocol. Returns how the agent can be given a session."""
    from acp import PROTOCOL_VERSION
    from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation

    told = await connection.initialize(
        protocol_version=PROTOCOL_VERSION,
        client_capabilities=ClientCapabilities(
            fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
        ),
        client_info=Implementation(name="plansurvive", version="1"),
    )
    if told.protocol_version != PROTOCOL_VERSION:
        text = f"it speaks version {told.protocol_version} of the protocol, and this program {PROTOCOL_VERSION}"
        raise unavailable(turn.name, f"{text}; update one of them")
    can = told.agent_capabilities
    if can and can.session_capabilities and can.session_capabilities.resume is not None:
        return Way.RESUME
    return Way.LOAD if can and can.load_session else Way.NONE


async def _opened(turn: _Turn, connection: ClientSideConnection, session: Session, state: State, way: Way) -> str:
    """Begin a session, or continue the one there is. Returns its id."""
    root = turn.context.workspace.root
    if not state.session:
        return (await connection.new_session(cwd=root, mcp_servers=[])).session_id
    if way is Way.NONE:
        raise ToolError(
            "AGENT_LOST",
            f"the process of the coding agent '{turn.name}' was lost, and it cannot load a session; what it has done"
            " until then may be half done: look at the files, then `plan resume` begins a new session",
        )
    if way is Way.RESUME:
        await connection.resume_session(cwd=root, session_id=state.session, mcp_servers=[])
        return state.session
    session.is_replaying = True
    try:
        await connection.load_session(cwd=root, session_id=state.session, mcp_servers=[])
    finally:
        session.is_replaying = False
    return state.session


async def _prompted(connection: ClientSideConnection, session: Session, name: str, text: str) -> str:
    """Send a request, and wait for the end of the turn, or for a permission that nobody has decided in time."""
    from acp.schema import TextContentBlock

    session.begin()
    work = asyncio.ensure_future(connection.prompt(session_id=name, prompt=[TextContentBlock(type="text", text=text)]))
    held = asyncio.ensure_future(session.held.wait())
    try:
        await asyncio.wait([work, held], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            await connection.cancel(session_id=name)
            session.cancelled.set()
            await asyncio.wait([work], timeout=CANCEL_SECONDS)
        if not work.done():
            return "cancelled"
        ended = work.result()
    except asyncio.CancelledError:
        with suppress(Exception):  # the agent may be gone already
            await asyncio.wait_for(connection.cancel(session_id=name), END_SECONDS)
            await asyncio.wait([work], timeout=END_SECONDS)
        raise
    finally:
        held.cancel()
        work.cancel()
        await asyncio.gather(work, held, return_exceptions=True)
    if ended.usage is not None:
        session.usage |= {
            "inputTokens": ended.usage.input_tokens, "outputTokens": ended.usage.output_tokens,
            "totalTokens": ended.usage.total_tokens,
        }  # fmt: skip
    return str(ended.stop_reason)


async def _in_time(turn: _Turn, work: Awaitable[T]) -> T:
    try:
        return await asyncio.wait_for(work, START_SECONDS)
    except TimeoutError:
        said = turn.recorder.tail(STDERR).strip()[-500:]
        why = f"; it has written: {turn.context.masked(said)}" if said else "; is it one that speaks the protocol?"
        raise unavailable(turn.name, f"no answer within {START_SECONDS:g} s{why}") from None


def _problem(schema: Mapping[str, Any], text: str) -> str:
    return form_problem(schema, _json_of(text), lambda: True)


def _json_of(text: str) -> str:
    """The JSON of an answer, without the fence that models put around it."""
    found = text.strip()
    if found.startswith("```"):
        found = found.partition("\n")[2].rpartition("```")[0]
    return found.strip()


async def _fed(source: asyncio.StreamReader, reader: asyncio.StreamReader) -> None:
    """Pass on what the agent writes to the library, which wants longer lines than a pipe's reader has."""
    try:
        while data := await source.read(65_536):
            reader.feed_data(data)
    finally:
        reader.feed_eof()


async def _recorded(source: asyncio.StreamReader, recorder: Recorder) -> None:
    number: Literal[2] = STDERR
    while data := await source.read(65_536):
        recorder.add(number, data)
