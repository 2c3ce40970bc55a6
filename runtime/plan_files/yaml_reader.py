"""Parses YAML into plain JSON data, as strictly as `plans.definition.parsing.parse_json` parses JSON.

Scalars follow YAML 1.2: `yes`, `no`, `on`, `12:30` and dates are strings, only true and false are booleans. Duplicate
keys, keys that are not strings, merge keys, tags and excessive nesting are rejected with their line, as are aliases
that expand to more than a plan may contain. Raises Unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import yaml

from plansurvive.plans.definition.parsing import MAX_BYTES, MAX_DEPTH, Unreadable, check_values

MAX_VALUES = 1_000_000
"""Maximum values in a plan, aliases expanded."""

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,400}|0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)

if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it is built in


class _Loader(_SafeLoader):
    """Builds plain data from one document, by the rules in the module's docstring."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - pyyaml reads it so

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        """Construct an object; rejects duplicate keys and keys that are not strings."""
        if not isinstance(node, yaml.MappingNode):
            raise _unreadable("expected an object here", node.start_mark)
        found: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, dict) and len(key) == 1 and isinstance(inner := next(iter(key)), str):
                text = f'braces without quotes are an object in YAML; put the text in quotes: "{{{{{inner}}}}}"'
                raise _unreadable(text, key_node.start_mark)
            if not isinstance(key, str):
                raise _unreadable(f"the key {key!r} is not a string; put it in quotes", key_node.start_mark)
            if key in found:
                text = f"'{key}' appears twice in one object; remove one of them"
                raise _unreadable(text, key_node.start_mark, "PLAN_DUPLICATE_KEY")
            found[key] = self.construct_object(value_node, deep=deep)
        return found


def parse_yaml(text: str) -> Any:
    """Parse a YAML text of one document. Raises Unreadable."""
    try:
        _check_events(text)
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.reader.ReaderError as error:
        raise Unreadable(
            "PLAN_BAD_TEXT", f"character {error.character:#x} is not allowed in YAML; remove it"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        before = text[: mark.index].rpartition("\n")[2].rstrip() if mark else ""
        there = text[mark.index : mark.index + 3] if mark else ""
        raise _unreadable(_in_plain_words(error, there, before), mark) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable("PLAN_NOT_YAML", f"the text cannot be parsed as YAML: {error}") from error
    _check_size(data)
    check_values(data)
    return data


_PLAIN = (
    ("'\\t'", "a tab; YAML is indented with spaces, so replace the tabs at the beginning of lines"),
    ("mapping values are not allowed", "a colon stands where no field can be: put a text that has ': ' in it in "
        "quotes, or indent the line as those beside it"),
    ("did not find expected alphabetic", "`*` or `&` begins an alias in YAML; put the text in quotes"),
    ("undefined alias", "`*` begins an alias in YAML; put the text in quotes"),
    ("found another document", "a second document begins here; write each plan into its own file"),
    ("block mapping did not find expected key", "this line does not belong to the object around it: indent it as the "
        "lines beside it, and put texts that have quotes or ': ' in them in quotes"),
    ("did not find expected '-'", "this line does not belong to the list around it: indent it as its items, and begin "
        "each with `- `"),
    ("did not find expected ',' or", "a list or an object is not closed before this: add `]` or `}`, or a comma"),
    ("flow node did not find expected", "a list or an object is not closed before this: add `]` or `}`"),
    ("could not find expected ':'", "a field is `name: value`; the colon, or the quotes around a text, are missing"),
    ("unexpected end of stream", "a text in quotes has no end; add the quotes"),
    ("unknown escape character", "in double quotes a backslash is written twice: \\\\; or use single quotes"),
)  # fmt: skip
"""What the parser says, and the same in plain words with what to do."""


_ENDED = (
    "a value that begins with a bracket ends with it; put all of the text in quotes, as in '{{a.b}} and more'",
    "a text that begins with quotes ends with them; put all of it in the other ones, as in '\"a-b\".c == `0`'",
)
"""Of text behind brackets, and behind quotes."""


def _in_plain_words(error: yaml.MarkedYAMLError, there: str, before: str = "") -> str:
    """What is wrong where the parser stopped, before this text, and behind that of its line."""
    character = there[:1]
    if there == "```":
        return "this is Markdown: keep what is between the lines with ```, without these lines"
    said = " ".join(part for part in (error.context, error.problem) if part)
    if character == "\t":
        return _PLAIN[0][1]
    if "cannot start any token" in said and character:
        return f"'{character}' cannot begin a value in YAML; put the text in quotes"
    if "did not find expected key" in said and before.endswith(("'", '"', "}", "]")):
        return _ENDED[before[-1] in "'\""]
    return next((plain for parser, plain in _PLAIN if parser in said), said)


def _check_events(text: str) -> None:
    """Reject excessive nesting before the recursive constructor runs."""
    depth = 0
    for event in yaml.parse(text, Loader=_SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            text = f"nested deeper than {MAX_DEPTH}; flatten the arguments"
            raise _unreadable(text, event.start_mark, "PLAN_TOO_DEEP")


def _check_size(data: Any) -> None:
    """Reject aliases that expand endlessly, or to more than a plan may contain."""
    values = size = 0
    stack = [(data, 0)]
    while stack:
        item, depth = stack.pop()
        values += 1
        if depth > MAX_DEPTH:
            raise Unreadable(
                "PLAN_TOO_DEEP", f"nested deeper than {MAX_DEPTH} with aliases expanded; write the values out instead"
            )
        size += len(item) if isinstance(item, str) else 0
        if values > MAX_VALUES or size > MAX_BYTES:
            raise Unreadable("PLAN_TOO_LARGE", "the plan is too large with its aliases expanded; use fewer aliases")
        if isinstance(item, dict):
            stack.extend((each, depth + 1) for each in item.values())
        elif isinstance(item, list):
            stack.extend((each, depth + 1) for each in item)


def _unreadable(what: str, mark: Any, code: str = "PLAN_NOT_YAML") -> Unreadable:
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return Unreadable(code, f"{where}{what}")


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text[2:], base) if base != 10 else int(text)


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node)).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


def _boolean(loader: _Loader, node: yaml.ScalarNode) -> bool:
    return str(loader.construct_scalar(node)).lower() == "true"


def _refused(loader: _Loader, node: yaml.Node) -> Any:
    del loader
    raise _unreadable(
        f"the tag {node.tag} is not supported in plans; remove it, or put the text in quotes", node.start_mark
    )


_TAG = "tag:yaml.org,2002:"
for _name, _pattern, _first in (
    ("null", _NULL, ["~", "n", "N", ""]),
    ("bool", _BOOL, list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+0123456789.")),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern.pattern})\Z"), _first)
for _name, _constructor in (("int", _integer), ("float", _number), ("bool", _boolean)):
    _Loader.add_constructor(_TAG + _name, _constructor)
for _name in ("binary", "timestamp", "omap", "pairs", "set"):
    _Loader.add_constructor(_TAG + _name, _refused)
_Loader.add_constructor(None, _refused)
