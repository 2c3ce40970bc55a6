"""Fixture tools that ask the client for something and go on with what it says (MCP 2026-07-28, multi round-trip).

Our own tools ask in this way for decisions only (`apps.mcp.decisions`); the suite wants names, colours, samples.
"""

from __future__ import annotations

import json
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

Asking = Context[Any, Any]
Answer = str | InputRequiredResult


def form(message: str, **fields: str) -> ElicitRequest:
    """A form with these fields and their types, all of them needed."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(text: str) -> CreateMessageRequest:
    """A request to the client's model."""
    messages = [SamplingMessage(role="user", content=TextContent(text=text))]
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=messages, max_tokens=100))


def said(ctx: Asking, key: str, field: str) -> str | None:
    """What a form was filled in with; None if it was not."""
    found = (ctx.input_responses or {}).get(key)
    value = found.content.get(field) if isinstance(found, ElicitResult) and found.content else None
    return str(value) if value is not None else None


async def elicitation(ctx: Asking) -> Answer:
    """Asks for a name."""
    name = said(ctx, "user_name", "name")
    return (
        f"Hello, {name}!" if name else InputRequiredResult(input_requests={"user_name": form("Name?", name="string")})
    )


async def sampling(ctx: Asking) -> Answer:
    """Asks the client's model."""
    found = (ctx.input_responses or {}).get("capital")
    if isinstance(found, CreateMessageResult) and isinstance(found.content, TextContent):
        return f"Model said: {found.content.text}"
    return InputRequiredResult(input_requests={"capital": sample("What is the capital of France?")})


async def list_roots(ctx: Asking) -> Answer:
    """Asks for the client's roots."""
    found = (ctx.input_responses or {}).get("roots")
    if isinstance(found, ListRootsResult):
        return f"{len(found.roots)} roots"
    return InputRequiredResult(input_requests={"roots": ListRootsRequest()})


async def request_state(ctx: Asking) -> Answer:
    """Asks, and wants its state back."""
    if said(ctx, "confirm", "ok") is not None and ctx.request_state == "nonce":
        return "state-ok: confirmed"
    return InputRequiredResult(input_requests={"confirm": form("Confirm?", ok="boolean")}, request_state="nonce")


async def tampered_state(ctx: Asking) -> Answer:
    """Asks, with a state that somebody will change; the library refuses it."""
    if ctx.request_state is not None:
        return f"state-ok: {ctx.request_state}"
    return InputRequiredResult(input_requests={"confirm": form("Confirm?", ok="boolean")}, request_state="one")


async def multiple_inputs(ctx: Asking) -> Answer:
    """Asks for three things at once."""
    requests: dict[str, InputRequest] = {
        "user_name": form("Name?", name="string"), "greeting": sample("Greet"), "client_roots": ListRootsRequest(),
    }  # fmt: skip
    if requests.keys() <= (ctx.input_responses or {}).keys():
        return "All inputs received."
    return InputRequiredResult(input_requests=requests, request_state="several")


async def multi_round(ctx: Asking) -> Answer:
    """Asks twice, one after the other."""
    state = json.loads(ctx.request_state or "{}")
    name, color = said(ctx, "step1", "name"), said(ctx, "step2", "color")
    if state.get("round") == 2 and color:
        return f"{state['name']} likes {color}."
    if state.get("round") == 1 and name:
        kept = json.dumps({"round": 2, "name": name})
        return InputRequiredResult(input_requests={"step2": form("Colour?", color="string")}, request_state=kept)
    kept = json.dumps({"round": 1})
    return InputRequiredResult(input_requests={"step1": form("Name?", name="string")}, request_state=kept)


async def capabilities(ctx: Asking) -> Answer:
    """Asks only for what the client has declared."""
    has, requests = ctx.client_capabilities, dict[str, InputRequest]()
    if has is None or has.sampling is not None:
        requests["sample"] = sample("Say hello")
    if has is None or has.elicitation is not None:
        requests["ask"] = form("Name?", name="string")
    return InputRequiredResult(input_requests=requests, request_state="by capability")


async def asking_prompt(ctx: Asking) -> list[UserMessage] | InputRequiredResult:
    """A prompt that asks first."""
    found = said(ctx, "user_context", "context")
    if found:
        return [UserMessage(role="user", content=TextContent(text=f"Use the following context: {found}"))]
    return InputRequiredResult(input_requests={"user_context": form("Which context?", context="string")})


TOOLS = (
    elicitation, sampling, list_roots, request_state, tampered_state, multiple_inputs, multi_round, capabilities,
)  # fmt: skip


def register(server: MCPServer[Any]) -> None:
    """Add the fixtures."""
    for each in TOOLS:
        server.add_tool(each, name=f"test_input_required_result_{each.__name__}")
    server.prompt(name="test_input_required_result_prompt")(asking_prompt)
