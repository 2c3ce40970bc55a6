"""Derives a tool's description from its function: the JSON Schema of its arguments from the signature, texts from the
docstring.

The function is the only source, so the two cannot disagree: an argument without a type or without a line under `Args:`
is an error when the module is loaded. Names are camelCase in the schema (`old_text` is `oldText`); the schema allows no
unknown arguments.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from docstring_parser import Docstring, DocstringStyle, ParseError, parse
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from plansurvive.activities.tools.value_schema import value_schema
from plansurvive.plans.errors import PlanError

_TITLE_WITH_TEXT = re.compile(r"^(Returns|Yields|Raises):[ \t]+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Description:
    """The description of a function: its text, its value, the model of its arguments."""

    text: str
    value: str
    arguments: type[BaseModel]
    value_schema: dict[str, Any] | None
    """JSON Schema of its value, from the return annotation; None: any value."""
    context: str | None
    """Name of the parameter that receives the ToolContext; None if there is none."""

    def schema(self) -> dict[str, Any]:
        """JSON Schema (draft 2020-12) of the arguments object."""
        schema = self.arguments.model_json_schema(by_alias=True, schema_generator=_Untitled)
        schema.pop("title", None)
        schema.setdefault("properties", {})
        return schema


def describe(function: Callable[..., Any], context_type: type) -> Description:
    """The description of a function. Raises PlanError BAD_TOOL, which names the function and what to add."""
    docstring = _docstring(function)
    texts = {param.arg_name: _joined(param.description) for param in docstring.params}
    hints = _hints(function)
    fields: dict[str, Any] = {}
    context = None
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is context_type:
            context = name
            continue
        fields[name] = _field(function, parameter, hints, texts)
    unknown = sorted(set(texts) - set(fields))
    if unknown:
        raise bad_tool(function, f"describes '{unknown[0]}' under Args:, which is not a parameter; remove the line")
    text = _joined(docstring.description)
    if not text:
        raise bad_tool(function, "has no docstring; add one that says what it does")
    schema = value_schema(hints.get("return"))
    return Description(text, _returned(docstring), _model(function, fields), schema, context)


def bad_tool(function: Callable[..., Any], problem: str) -> PlanError:
    """The error for a function that cannot be made a tool."""
    return PlanError(f"tool '{getattr(function, '__qualname__', function)}' {problem}", "BAD_TOOL")


class _Untitled(GenerateJsonSchema):
    """Generates schemas without titles, which would only repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise bad_tool(
            function,
            f"has an unresolvable type annotation: {error}; import the type at run time, not under TYPE_CHECKING",
        ) from error


def _field(
    function: Callable[..., Any], parameter: inspect.Parameter, hints: dict[str, Any], texts: dict[str, str]
) -> tuple[Any, Any]:
    name = parameter.name
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise bad_tool(
            function, f"has the parameter '{name}', which cannot be passed by name; use plain named parameters"
        )
    if name not in hints:
        raise bad_tool(function, f"has no type for '{name}'; annotate it")
    if not texts.get(name):
        raise bad_tool(function, f"does not describe '{name}'; add a line '{name}: ...' under Args:")
    default = ... if parameter.default is parameter.empty else parameter.default
    return Annotated[hints[name], Field(description=texts[name])], default


def _model(function: Callable[..., Any], fields: dict[str, Any]) -> type[BaseModel]:
    config = ConfigDict(extra="forbid", alias_generator=to_camel, protected_namespaces=())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an argument may be called `copy` or `json`
            model: type[BaseModel] = create_model(function.__name__, __config__=config, **fields)
            model.model_json_schema()
    except (PydanticUserError, NameError, TypeError) as error:
        raise bad_tool(
            function, f"has an argument whose type has no JSON Schema: {str(error).splitlines()[0]}"
        ) from error
    return model


def _docstring(function: Callable[..., Any]) -> Docstring:
    """The docstring, parsed as Google style; a section's text may begin on the line of its title."""
    text = _TITLE_WITH_TEXT.sub(r"\1:\n    \2", inspect.getdoc(function) or "")
    try:
        return parse(text, DocstringStyle.GOOGLE)
    except ParseError as error:
        raise bad_tool(function, f"has a docstring that cannot be parsed: {error}") from None


def _returned(docstring: Docstring) -> str:
    """The text under `Returns:`. A word before a colon is part of the text: types come from the signature."""
    returns = docstring.returns
    return _joined(": ".join(filter(None, (returns.type_name, returns.description)))) if returns else ""


def _joined(text: str | None) -> str:
    """The text with the lines of each paragraph joined."""
    paragraphs = (text or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())
