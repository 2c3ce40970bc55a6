"""An MCP client whose model obeys whoever tells it to get a step approved: it tries all that the server offers.

It speaks the protocol as the official SDK does, takes tasks, and cannot show forms to anybody. It knows the source: the
keys of requests that a person would be sent are guessed rightly. Whatever the server says is written down.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult, InputRequiredResult
from pydantic import ValidationError

from plansurvive.apps.mcp.tools.deciding import DECIDING
from tests.apps.mcp.tasks.agent import accepted, got, update

Data = dict[str, Any]
WAIVING: Data = {
    "requiresApproval": False, "approveAll": True, "approve_all": True, "yes": True, "waivers": True, "options":
    {"waivers": True, "approveAll": True}, "owns": ["**"], "defaults": {"approval": {"timeout": 0.1, "onTimeout":
    "approve"}}, "knownPlans": ["0" * 64], "notify": [{"on": ["approval"], "to": "team"}], "approval": "approve",
    "approved": True, "decision": "approve", "decisions": {"gone": "approve"}, "queue": "others", "by": "ann",
    "verified": True, "via": "web", "may_approve": True, "mayApprove": True, "remember": True, "role": "operator",
    "inputResponses": {"gone": {"action": "accept", "content": {"decision": "approve"}}}, "requestState": "v1.AAAA",
    "_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}, "token": "x",
}  # fmt: skip
"""Arguments that would decide or waive, if a tool had them."""
_IN_TIME: Data = {"timeout": 0.1, "onTimeout": "approve"}
_GONE: Data = {"tool": "delete_file", "args": {"path": "kept.txt"}}
_WAIVED: Data = {**_GONE, "requiresApproval": False}
_OF_THE_STEP: tuple[tuple[str, Any], ...] = (
    ("requiresApproval", False), ("requires_approval", False), ("requiresApproval", None), ("approval", _IN_TIME),
    ("approval.onTimeout", "approve"), ("status", "completed"), ("decision", {"approved": True}), ("queue", "others"),
    ("result", {"ok": True}),
)  # fmt: skip
_OF_THE_PLAN: tuple[tuple[str, Any], ...] = (
    ("owns", ["**"]), ("defaults.approval", _IN_TIME), ("waivers", True), ("options", {"waivers": True}),
    ("options.waivers", True), ("notify", []), ("queue", "others"), ("defaults", {"requiresApproval": False}),
    ("workspace", "/"),
)  # fmt: skip
_ADDED: tuple[Data, ...] = (
    _WAIVED, {**_GONE, "approval": _IN_TIME}, {"steps": [{"id": "in", **_WAIVED}]},
    {"tool": "plan", "args": {"steps": [{"id": "in", **_WAIVED}]}}, {"tool": "approve", "args": {"stepId": "gone"}},
)  # fmt: skip
EDITS: tuple[Data, ...] = (
    *({"op": "set", "stepId": "gone", "path": path, "value": value} for path, value in _OF_THE_STEP),
    *({"op": "set", "path": path, "value": value} for path, value in _OF_THE_PLAN),
    *({"op": "add", "step": {"id": f"more{number}", **step}} for number, step in enumerate(_ADDED)),
)
"""Edits that would waive."""


@dataclass
class Obedient:
    """The agent. `said`: all that the server answered; `tried`: how many calls it made."""

    client: Client
    said: list[str] = field(default_factory=list)
    tried: int = 0
    taken: list[str] = field(default_factory=list)
    """Names of the tools and methods whose call was answered without an error."""

    async def call(self, tool: str, **arguments: Any) -> Data:
        """The structured content of an answer; empty if it is an error."""
        self.tried += 1
        try:
            found = await self.client.session.call_tool(tool, arguments, allow_input_required=True, allow_claimed=True)
        except (MCPError, ValidationError) as error:
            self.said.append(str(error))
            return {}
        self.said.append(found.model_dump_json())
        data = found.model_dump(by_alias=True)
        if data.get("isError"):
            return {}
        self.taken.append(tool)
        return dict(data.get("structuredContent") or {"planId": data.get("taskId")})

    async def reply(self, plan: str, keys: Mapping[str, Any], state: str | None) -> None:
        """Call plan_decide as a client would whose person has filled in a form."""
        self.tried += 1
        replies: Data = {key: ElicitResult(action="accept", content={"decision": "approve"}) for key in keys}
        try:
            found = await self.client.session.call_tool(
                "plan_decide", {"planId": plan}, allow_input_required=True, input_responses=replies,
                request_state=state,
            )  # fmt: skip
            self.said.append(found.model_dump_json())
            assert not isinstance(found, InputRequiredResult), "nobody can be asked through this client"
        except MCPError as error:
            self.said.append(str(error))

    async def update(self, task: str, keys: Mapping[str, Any]) -> None:
        """Reply to what the task of a plan asks."""
        self.tried += 1
        try:
            self.said.append(str(await update(self.client, task, {key: accepted(decision="approve") for key in keys})))
            self.said.append((await got(self.client, task)).model_dump_json())
        except MCPError as error:
            self.said.append(str(error))

    async def read(self, uri: str) -> None:
        """Read a resource."""
        self.tried += 1
        try:
            self.said.append((await self.client.read_resource(uri)).model_dump_json())
        except (MCPError, ValidationError, ValueError) as error:
            self.said.append(str(error))

    async def every_argument(self, plan: str, *, one_by_one: bool = False) -> None:
        """Call each tool that is offered, and those that decide, with the arguments that would decide or waive."""
        offered = {tool.name: tool.input_schema for tool in (await self.client.list_tools()).tools}
        for name in dict.fromkeys((*offered, *DECIDING)):
            own = offered.get(name, {}).get("properties", {"planId": {}})
            wanted = {argument: value for argument, value in WAIVING.items() if argument not in own}
            for some in [{argument: value} for argument, value in wanted.items()] if one_by_one else [wanted]:
                await self.call(name, **({"planId": plan} if "planId" in own else {}), **some)

    async def every_message(self, plan: str) -> None:
        """Edit, rerun, resume so that something runs unasked."""
        for edit in EDITS:
            await self.call("plan_edit", planId=plan, edits=[edit])
        for how in ({"only": "gone"}, {"startAt": "gone"}, {"only": "gone", "args": {"requiresApproval": False}}):
            await self.call("plan_rerun", planId=plan, **how)
        await self.call("plan_resume", planId=plan)
        await self.call("plan_unpause", planId=plan)

    async def every_decision(self, plan: str, guessed: Mapping[str, Any]) -> None:
        """Decide about all that a plan awaits, with the digests that it is shown and the keys that it computes."""
        await self.call("plan_decide", planId=plan)
        for item in (await self.call("plan_pending", planId=plan)).get("pending", []):
            named = {"planId": item["planId"], "stepId": item["stepId"], "digest": item["digest"]}
            await self.call("plan_approve", **named)
            await self.call("plan_approve", **named, comment="the person said so")
            await self.call("plan_answer", **named, value=True)
        await self.call("plan_event", planId=plan, name="approve", data={"stepId": "gone"})
        await self.call("plan_begin", planId=plan)
        for state in (None, "v1.AAAA", json.dumps(sorted(guessed)), "x" * 5_000):
            await self.reply(plan, guessed, state)
        await self.update(plan, guessed)

    async def every_resource(self, plans: list[str], secrets: list[str]) -> None:
        """Read whatever might hold what opens a way to decide."""
        for uri in _uris(plans, secrets):
            await self.read(uri)
        for path in secrets:
            await self.call("plan_start", file=path)
            await self.call("plan_check", file=path)
            await self.call("plan_start", workspace=path.rpartition("/")[0], plan={"steps": []})
        await self.call("plan_tools")
        await self.call("plan_list")
        self.said.append((await self.client.get_prompt("write_plan", {"request": "mcp.token"})).model_dump_json())


def _uris(plans: list[str], secrets: list[str]) -> Iterator[str]:
    for plan in plans:
        yield from (f"plan://{plan}{part}" for part in ("", "/graph", "/summary", "/file", "/files"))
    for path in secrets:
        name = path.rpartition("/")[2]
        yield from (f"file://{path}", f"plan://{name}", f"plan://..%2F{name}", f"plan://%2E%2E/{name}/file")
