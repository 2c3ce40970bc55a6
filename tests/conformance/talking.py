"""Fixture tools that no plan can be: those that talk to the client during a call, and diagnostic ones of the suite."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import MISSING_REQUIRED_CLIENT_CAPABILITY, SamplingMessage, TextContent
from pydantic import BaseModel, Field

Talking = Context[Any, Any]


class Reply(BaseModel):
    """One answer."""

    response: str = Field(description="User's response")


class Defaults(BaseModel):
    """A field of each type with a default (SEP-1034)."""

    name: str = Field(default="John Doe", description="User name")
    age: int = Field(default=30, description="User age")
    score: float = Field(default=95.5, description="User score")
    status: Annotated[str, Field(json_schema_extra={"enum": ["active", "inactive", "pending"]})] = "active"
    verified: bool = Field(default=True, description="Verification status")


def _enum(**schema: Any) -> Any:
    return Field(json_schema_extra=schema)


class Enums(BaseModel):
    """Choices in all their forms (SEP-1330)."""

    untitledSingle: str = _enum(enum=["active", "inactive", "pending"])  # noqa: N815
    titledSingle: str = _enum(  # noqa: N815
        oneOf=[
            {"const": "low", "title": "Low"},
            {"const": "medium", "title": "Medium"},
            {"const": "high", "title": "High"},
        ]
    )
    untitledMulti: list[str] = _enum(items={"type": "string", "enum": ["read", "write", "execute"]})  # noqa: N815
    titledMulti: list[str] = _enum(  # noqa: N815
        items={"anyOf": [{"const": "feature", "title": "Feature"}, {"const": "bug", "title": "Bug"}]}
    )
    legacyEnum: str = _enum(enum=["small", "large"], enumNames=["Small Size", "Large Size"])  # noqa: N815


async def tool_with_logging(ctx: Talking) -> str:
    """Logs three times."""
    for text in ("Tool execution started", "Tool execution continues", "Tool execution completed"):
        await ctx.info(text)
    return "logged"


async def logging_tool(ctx: Talking) -> str:
    """Logs once."""
    await ctx.info("logged")
    return "logged"


async def sampling(prompt: str, ctx: Talking) -> str:
    """Asks the client's model during the call."""
    messages = [SamplingMessage(role="user", content=TextContent(text=prompt))]
    found = await ctx.session.create_message(messages=messages, max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {found.content}"


async def _asked(ctx: Talking, message: str, schema: type[BaseModel]) -> str:
    found = await ctx.elicit(message=message, schema=schema)
    content = found.data.model_dump_json() if found.action == "accept" else "{}"
    return f"User response: action={found.action}, content={content}"


async def elicitation(message: str, ctx: Talking) -> str:
    """Asks the person during the call."""
    return await _asked(ctx, message, Reply)


async def elicitation_sep1034_defaults(ctx: Talking) -> str:
    """Asks with defaults."""
    return await _asked(ctx, "Please provide user information", Defaults)


async def elicitation_sep1330_enums(ctx: Talking) -> str:
    """Asks with choices."""
    return await _asked(ctx, "Please choose", Enums)


def x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "<none>") -> str:
    """Has an argument that clients repeat in a header (SEP-2243)."""
    return f"region={region}"


async def missing_capability(ctx: Talking) -> str:
    """Needs a client that samples."""
    if ctx.session.client_capabilities is None or ctx.session.client_capabilities.sampling is None:
        needs: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        code = MISSING_REQUIRED_CLIENT_CAPABILITY
        raise MCPError(code=code, message="This tool needs the capability sampling", data=needs)
    return "it has it"


async def trigger_tool_change(ctx: Talking) -> str:
    """Says that the tools have changed."""
    await ctx.notify_tools_changed()
    return "told"


async def trigger_prompt_change(ctx: Talking) -> str:
    """Says that the prompts have changed."""
    await ctx.notify_prompts_changed()
    return "told"


def json_schema_2020_12_tool(
    name: str = "", address: dict[str, str] | None = None, contactMethod: Literal["phone", "email"] = "phone",  # noqa: N803
    phone: str = "", email: str = "",
) -> str:  # fmt: skip
    """Has a schema with all keywords; `served.py` puts it into the list."""
    return f"{name} {address} {contactMethod} {phone} {email}"


def greet(name: str) -> str:
    """Answers at once, never with a task."""
    return f"Hello, {name}!"


TOOLS = (
    tool_with_logging, logging_tool, sampling, elicitation, elicitation_sep1034_defaults,
    elicitation_sep1330_enums, x_mcp_header, missing_capability, trigger_tool_change,
    trigger_prompt_change, json_schema_2020_12_tool, greet,
)  # fmt: skip
WITHOUT_PREFIX = (json_schema_2020_12_tool, greet)
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}  # fmt: skip


def register(server: MCPServer[Any]) -> None:
    """Add the fixtures."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # the suite tests what is deprecated as well
    for each in TOOLS:
        server.add_tool(each, name=each.__name__ if each in WITHOUT_PREFIX else f"test_{each.__name__}")
