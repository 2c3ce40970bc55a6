"""The description of a tool for plans, people and LLMs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from plansurvive.plans.model.parts import Parted, united
from plansurvive.plans.model.receivers import receives
from plansurvive.plans.model.rules import Retry
from plansurvive.plans.model.values import ToolName, Value

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


_OF_OBJECT = frozenset(("type", "properties", "required", "additionalProperties", "title", "description"))
_OF_FIELD = frozenset(("type", "title", "description", "default"))
_TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}
_NAMED = tuple(_TYPES)
"""Keywords of schemas that say no more than the types of arguments, and the types by their names there."""


class ToolSpec(Parted, Value):
    """The description of a tool for plans, people and LLMs, derived from its signature and docstring."""

    name: ToolName = Field(description="The step's `tool`, and the activity type in Temporal.")
    description: str = Field(description="What it does, from the docstring.")
    args_schema: dict[str, Any] = Field(description="JSON Schema of the arguments object.")
    value: str = Field(default="", description="What its result value looks like.")
    value_schema: dict[str, Any] | None = Field(
        default=None, description="JSON Schema of its result value; none: any value."
    )
    approval: Literal["never", "always"] = Field(default="never", description="Whether calls need approval by default.")
    approval_exempt: dict[str, list[Any]] = Field(
        default_factory=dict, description="Arguments whose listed values need no approval: {'method': ['GET', 'HEAD']}."
    )
    sends: dict[str, Literal["always", "values"]] = Field(
        default_factory=dict,
        description="Arguments that leave the machine. An exempt call needs approval if it gives one marked `always`,"
        " or if one holds a step's value or a model's choice, unless the host of its `url` is one of `receivers`.",
    )
    receivers: list[str] = Field(
        default_factory=list, description="Hosts that may receive without approval: PLANS_HTTP_ALLOW of the worker."
    )
    effect: Literal["pure", "keyed", "opaque"] = Field(
        default="opaque", description="pure: only reads; keyed: can recognise its own effect; opaque: neither."
    )
    timeout: float = Field(default=60.0, description="Seconds one attempt may take, if the step sets no limit.")
    retry: Retry | None = Field(default=None, description="Attempts and delays, if the step sets none.")
    repeatable: bool = Field(
        default=True,
        description="False: one attempt only; if its worker dies, the outcome is unknown (OUTCOME_UNKNOWN).",
    )
    quoting: dict[str, Literal["shell", "python", "jmespath"]] = Field(
        default_factory=dict, description="Arguments that are code: inserted values are quoted for that language."
    )
    durable: bool = Field(
        default=False, description="Run by the workflow itself (a timer or a child), not as an activity."
    )
    cache: bool = Field(
        default=False,
        description="Calls may reuse the result of an earlier run, unless the plan or the step forbids it.",
    )
    quick: bool = Field(
        default=False, description="Calls take milliseconds: several may be made in one activity, where a plan says so."
    )
    reads: Literal["reported", "unknown"] = Field(
        default="unknown",
        description="reported: its value depends on its arguments and the files that it reports as read, on no clock,"
        " chance or network.",
    )
    outside: bool = Field(default=True, description="It may have effects outside the workspace.")
    version: str = Field(
        default="", max_length=100, description="Another version gives other results; none: its code says it."
    )
    server: str = Field(default="", description="The MCP server that has the tool (mcp.toml); empty: the worker.")
    own_name: str = Field(default="", description="Of a server's tool: what the server calls it.")
    definition: str = Field(
        default="", description="Of a server's tool: SHA-256 of its name, description, schemas and hints as listed."
    )
    judged: bool = Field(
        default=False,
        description="Its worker judges each call by rules of its own: it asks for nothing by default before that.",
    )
    as_asked: bool = Field(
        default=False,
        description="Who asks makes the call itself: it is approved as it is or denied, never with other arguments.",
    )
    asks_because: str = Field(default="", description="Why its calls need approval, if not for what they say.")
    withheld: list[str] = Field(
        default_factory=list,
        description="First names of references in its arguments whose values only the worker has that makes the call.",
    )
    for_models: str = Field(default="", description="A line about it for models.")

    @cached_property
    def validator(self) -> Draft202012Validator:
        """Validates arguments against the schema. Cached: building it takes as long as validating one step."""
        from jsonschema import Draft202012Validator  # the import takes a tenth of `plan list`, which validates nothing

        return Draft202012Validator(self.args_schema)

    @cached_property
    def plain_arguments(self) -> dict[str, tuple[type, ...]]:
        """By argument, the types of the values that certainly fit, of arguments of which the schema says no more."""
        fields = self.args_schema.get("properties")
        if self.args_schema.keys() - _OF_OBJECT or self.args_schema.get("type") != "object" or type(fields) is not dict:
            return {}
        plain = {name: each for name, each in fields.items() if type(each) is dict and not each.keys() - _OF_FIELD}
        return {name: _TYPES[each["type"]] for name, each in plain.items() if each.get("type") in _NAMED}

    def asks_by_default(self, args: dict[str, Any], carries: bool = False) -> bool:
        """Whether a call with these arguments needs approval, unless the step overrides it.

        `carries`: a step's value or a model's choice is in one of the arguments that it sends.
        """
        if self.approval == "never":
            return False
        for name, exempt in self.approval_exempt.items():
            default = self.args_schema.get("properties", {}).get(name, {}).get("default")
            if args.get(name, default) in exempt:
                return self._sends(args, carries)
        return True

    def _sends(self, args: dict[str, Any], carries: bool) -> bool:
        """Whether a call sends something to a host that is not one of `receivers`."""
        given = any(when == "always" and args.get(name) is not None for name, when in self.sends.items())
        return bool(self.sends) and (carries or given) and not receives(args.get("url"), self.receivers)


def needs_approval(tool: str) -> str:
    """With which sentence an attempt ends that may not call the tool before a person has approved it."""
    return f"{tool} needs a person's approval with these arguments"


def joined(tools: Mapping[str, ToolSpec], others: Mapping[str, ToolSpec]) -> dict[str, ToolSpec]:
    """The tools, and those of `others`, which take precedence. A tool of both has what features of either say of it.

    Workers of different queues may allow a tool different things; each checks the steps of its own queue, and refuses
    what it does not allow.
    """
    found = {**tools, **others}
    for name in (each for each in tools if each in others and (tools[each].parts or others[each].parts)):
        mine, other = tools[name], others[name]
        withheld = list(dict.fromkeys([*other.withheld, *mine.withheld]))
        update = {"parts": united(mine, other), "withheld": withheld, "for_models": other.for_models or mine.for_models}
        found[name] = other.model_copy(update=update)
    return found
