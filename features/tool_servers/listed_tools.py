"""From what a server says about its tools to specs that plans use, by name `server.tool`.

A server's hints about a tool can only make it stricter: nothing that a server says waives an approval or allows
another attempt. The operator's word in mcp.toml can (`approval`, `repeatable`), except for what the server itself calls
destructive. Names and descriptions are cleaned and bounded; a tool whose schema cannot be used is left out, with the
reason.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import Field

from plansurvive.features.tool_servers.foreign_schema import Unusable, known_fields, usable
from plansurvive.plans.model import ToolSpec, Value
from plansurvive.plans.text.safe_text import safe

MAX_TOOLS = 500
"""Tools of one server."""
MAX_LISTED = 400_000
"""Characters of all specs of one server: they are part of what a plan's history records."""
MAX_DESCRIPTION = 2_000
MAX_NAME = 100
"""Characters of a tool's own name."""
MAX_LEFT_OUT = 100
_ODD = re.compile(r"[^A-Za-z0-9_-]+")
FAULTY = {"type": "object", "plans/fault": True}
"""In place of the schema of a tool that is not as the protocol has it: only its name is known."""
NO_DESCRIPTION = "(its server does not describe it)"


class Terms(Value):
    """What the operator says of the tools of a server (mcp.toml), by their own names."""

    unasked: list[str] = Field(default_factory=list, description="Need no approval, unless the server warns of them.")
    repeatable: list[str] = Field(default_factory=list, description="May be called again after a call was lost.")
    timeout: float = Field(default=60.0, description="Seconds of one call.")


class Listing(Value):
    """The tools of one server as it last listed them; stored in the state directory."""

    server: str
    config: str = Field(default="", description="Digest of the server's table in mcp.toml that it was listed by.")
    time: datetime = Field(description="When it was listed, UTC.")
    tools: list[ToolSpec] = Field(default_factory=list)
    left_out: dict[str, str] = Field(default_factory=dict, description="By name, why a tool cannot be used.")
    error: str = Field(default="", description="Why it could not be listed when it was last tried.")
    tried: datetime | None = Field(default=None, description="When that was; none: it was listed.")

    @property
    def by_name(self) -> dict[str, ToolSpec]:
        """The tools by the name that steps use."""
        return {spec.name: spec for spec in self.tools}


def listing_of(
    server: str,
    tools: Iterable[Mapping[str, Any]],
    time: datetime,
    *,
    terms: Terms | None = None,
    config: str = "",
    offers: Callable[[str], bool] = lambda _: True,
    taken: Collection[str] = (),
) -> Listing:
    """The listing of a server. `tools`: as `tools/list` gives them, as JSON; `taken`: names that are not free.

    `offers`: whether the operator lets plans use a tool. Never raises, whatever the server says.
    """
    specs, left_out, size = list[ToolSpec](), dict[str, str](), 0
    names, seen = set(taken), set[str]()
    for number, tool in enumerate(tools):
        own = tool.get("name")
        if not isinstance(own, str) or not own or not offers(own):
            continue
        try:
            if own in seen:
                raise Unusable("the server lists two tools of this name")
            seen.add(own)
            if tool.get("inputSchema") == FAULTY:
                raise Unusable("it is not as the protocol says; its makers can tell by the schema of `tools/list`")
            spec = _spec(server, own, tool, terms or Terms(), names)
            size += len(spec.model_dump_json(exclude_defaults=True))
            if number >= MAX_TOOLS or size > MAX_LISTED:
                raise Unusable(f"the server lists more than {MAX_TOOLS} tools, or {MAX_LISTED:,} characters of them")
        except Unusable as error:
            if len(left_out) < MAX_LEFT_OUT:
                left_out[safe(own[:MAX_NAME])] = str(error)
            continue
        names.add(spec.name)
        specs.append(spec)
    return Listing(server=server, config=config, time=time, tools=specs, left_out=left_out)


def digest_of_tool(server: str, tool: Mapping[str, Any]) -> str:
    """SHA-256 of everything that a server says of a tool and that matters to who decides about a call of it."""
    said = {name: tool.get(name) for name in ("name", "title", "description", "inputSchema", "outputSchema")}
    annotations = tool.get("annotations")
    said["annotations"] = annotations if isinstance(annotations, Mapping) else None
    text = json.dumps(["plans: tool of a server, 1", server, said], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def definitions(tools: Mapping[str, ToolSpec]) -> dict[str, str]:
    """The definitions of the tools of servers, by name."""
    return {name: spec.definition for name, spec in tools.items() if spec.definition}


def step_tool_name(server: str, own: str, taken: Collection[str]) -> str:
    """The name that steps use: `server.tool`, of safe characters. Two names that would look the same get a mark."""
    plain = _ODD.sub("_", own)[:MAX_NAME]
    name = f"{server}.{plain}"
    if plain == own and name not in taken:
        return name
    return f"{name}-{hashlib.sha256(own.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _spec(server: str, own: str, tool: Mapping[str, Any], terms: Terms, taken: Collection[str]) -> ToolSpec:
    name = step_tool_name(server, own, taken)
    if name in taken:
        raise Unusable(f"another tool is already called '{name}'")
    asks, why = _asking(server, own, tool.get("annotations"), terms)
    output = tool.get("outputSchema")
    value = known_fields(output) if isinstance(output, Mapping) else None
    return ToolSpec(
        name=name,
        description=_described(tool),
        args_schema=usable(tool.get("inputSchema")),
        value="What the server returns: an object of the fields that it declares." if value else "What it returns.",
        value_schema=value,
        approval="always" if asks else "never",
        asks_because=why,
        timeout=terms.timeout,
        repeatable=own in terms.repeatable,
        server=server,
        own_name=own,
        definition=digest_of_tool(server, tool),
    )


def _asking(server: str, own: str, given: Any, terms: Terms) -> tuple[bool, str]:
    """Whether calls need approval, and why. Of the hints only the one that warns counts."""
    hints = given if isinstance(given, Mapping) else {}
    if hints.get("destructiveHint") is True:
        return True, f"server '{server}' says that it is destructive"
    if own in terms.unasked:
        return False, ""
    if hints.get("readOnlyHint") is True:
        return True, f"server '{server}' says that it only reads, which has not been checked"
    return True, f"it is a tool of server '{server}', and its effects are not known"


def _described(tool: Mapping[str, Any]) -> str:
    given = tool.get("description") or tool.get("title") or ""
    text = safe(str(given)).strip()
    return text[:MAX_DESCRIPTION] or NO_DESCRIPTION
