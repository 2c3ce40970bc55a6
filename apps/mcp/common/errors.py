"""Errors of tools as an agent reads them: the codes and sentences of the command line, as a tool's result.

A result with `isError` has `structuredContent` {code, message, problems}: an agent can correct its call by it. What
no one foresaw is logged, and the agent learns no more than that. Sentences that name commands and options name the
tools and arguments of this server instead, where it has them.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.types import CallToolResult, TextContent, Tool
from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from temporalio.client import Client

from plansurvive.client.errors import BadPlanId, PlanNotFound
from plansurvive.client.missing import completed
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.plain_words import in_plain_words, place_in
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.text.safe_text import safe

LOG = logging.getLogger(__name__)
MAX_PROBLEMS = 100
"""Problems of a plan that are reported at once."""
MAX_TEXT = 24_000
"""Characters of an error's text."""


_NAMED = re.compile(
    r"`plan (?P<verb>[a-z]+)(?: (?!-)(?:(?! -)[^`])*)?`"  # a command, without options
    r"|`[^`]*`"  # anything else that is quoted stays
    r"|--(?P<option>[a-z]+(?:-[a-z]+)*)\b(?: ?[A-Za-z]+=VALUE| [A-Z]{2,})?"
)
_ARGUMENTS = {"from": "startAt", "input": "inputs"}
"""Arguments with another name than the option of the command line."""


def error_of(error: ToolError, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> PlanError:
    """The error that the library wrapped, as one of ours. `schema`: of the tool's arguments."""
    cause = error.__cause__
    if isinstance(cause, PlanError):
        return cause
    if isinstance(cause, ValidationError):
        rows = [_wrong(each, schema, arguments) for each in cause.errors(include_url=False)[:MAX_PROBLEMS]]
        return PlanError("; ".join(dict.fromkeys(rows)), "BAD_ARGUMENTS")
    if cause is None:
        return PlanError(str(error), "UNKNOWN_TOOL")
    LOG.error("a tool failed unexpectedly", exc_info=cause)
    return PlanError(f"{type(cause).__name__}; this is a bug, the log of the server has more", "UNEXPECTED")


def _wrong(error: Any, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What is wrong with an argument, where in it, and what to write."""
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    place = place_in(arguments, error["loc"], is_missing=kind == "missing")
    where = ".".join(map(str, place)) or "the arguments"
    if kind == "missing":
        return f"{where}: it is missing; add it"
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        key, known = context["discriminator"].strip("'"), _tags(schema, schema, place)
        form = f"; write one of {', '.join(known)}, as in {json.dumps({key: known[0]})}" if known else ""
        if kind == "union_tag_not_found":
            return f"{where}: `{key}` is missing{form}"
        return f"{where}: `{key}` is {context['tag']!r:.100}{Hints().question(str(context['tag']), known) or form}"
    if kind == "extra_forbidden":
        known = [
            *dict.fromkeys(name for each in _at(schema, schema, place[:-1]) for name in each.get("properties", ()))
        ]
        return f"{where}: there is no such key{Hints().question(str(place[-1]), known)}"
    shown = f"; it is {value!r:.100}" if isinstance(value, (str, int, float, bool)) or value is None else ""
    return f"{where}: {in_plain_words(str(error['msg']))}{shown}"


def _tags(schema: Mapping[str, Any], root: Mapping[str, Any], place: tuple[str | int, ...]) -> list[str]:
    """What tells the kinds of a value at a place apart, by the JSON Schema of the arguments."""
    return [tag for each in _at(schema, root, place) for tag in each.get("discriminator", {}).get("mapping", ())]


def _at(
    schema: Mapping[str, Any], root: Mapping[str, Any], place: tuple[str | int, ...]
) -> Iterator[Mapping[str, Any]]:
    """The schemas that a value at a place may have."""
    if "$ref" in schema:
        schema = root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {})
    if not place:
        yield schema
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _at(each, root, place)
    if place:
        part, rest = place[0], place[1:]
        inner = schema.get("items") if isinstance(part, int) else schema.get("properties", {}).get(part)
        if isinstance(inner, Mapping):
            yield from _at(inner, root, rest)


async def resource_error(error: ResourceError, connect: Callable[[], Awaitable[Client]]) -> ResourceError:
    """The error of reading a resource, with the code and sentence of ours that the library wrapped."""
    cause = error.__cause__
    while cause is not None and not isinstance(cause, PlanError):
        cause = cause.__cause__
    if cause is None:
        return error
    cause = await completed(connect, cause)
    text = f"{cause.code}: {safe(cause.message)[:MAX_TEXT]}"
    return ResourceNotFoundError(text) if isinstance(cause, (PlanNotFound, BadPlanId)) else ResourceError(text)


def told(error: PlanError, tools: Mapping[str, Tool] = MappingProxyType({}), name: str = "") -> CallToolResult:
    """An error as the result of a call of the tool of that name."""
    own = tools[name].input_schema.get("properties", {}) if name in tools else {}

    def said(text: str) -> str:
        return as_tools_say(text, tools, own)

    data: dict[str, Any] = {"code": error.code, "message": safe(said(error.message))[:MAX_TEXT]}
    text = f"{error.code}: {data['message']}"
    if isinstance(error, InvalidPlan):
        data["problems"] = [
            {**each.model_dump(mode="json"), "message": said(each.message)} for each in error.problems[:MAX_PROBLEMS]
        ]
    return CallToolResult(content=[TextContent(text=text)], structured_content=data, is_error=True)


def as_tools_say(text: str, tools: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """A sentence of the command line with the names of tools and of a tool's arguments. What has none stays. Pure."""

    def named(found: re.Match[str]) -> str:
        tool, option = f"plan_{found['verb']}", found["option"] or ""
        argument = _ARGUMENTS.get(option, to_camel(option.replace("-", "_")))
        if argument in arguments:
            return f"`{argument}`"
        return tool if tool in tools else found[0]

    return _NAMED.sub(named, text)
