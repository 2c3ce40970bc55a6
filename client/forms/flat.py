"""Forms of one text per field, for a tool's arguments and for questions on a terminal: the tree of an object, cut flat.

Pure. Strings and numbers are typed as text, booleans and enums are chosen, everything else is written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plansurvive.client.forms.kinds import Schema, properties_of, required_of
from plansurvive.client.forms.texts import ABSENT
from plansurvive.client.forms.tree import MAX_DEPTH, Maker, Node
from plansurvive.plans.text.safe_text import line

_NAMES = {"text": "text", "integer": "whole number", "number": "number", "choice": "choice", "json": "JSON"}


def flat_fields(schema: Schema | None, values: Mapping[str, Any]) -> list[Node]:
    """One field per property of an object's schema, named as it is, plus one per unknown value.

    All are JSON without a schema, as for a tool that is not known.
    """
    properties, required = properties_of(schema or {}), required_of(schema or {})
    maker = Maker(schema or {}, (), "", fill=False)
    nodes = [
        maker.node(part, values.get(name, ABSENT), name, name, required=name in required, depth=MAX_DEPTH)
        for name, part in properties.items()
    ]
    unknown = "JSON" if schema is None else "not an argument of the tool; clear it to remove it"
    others = [name for name in values if name not in properties]
    return [replace(node, label=_label(node)) for node in nodes] + [
        Node(name, name, "json", {}, value=values[name], label=unknown) for name in others
    ]


def _label(node: Node) -> str:
    """Kind, default and description in one line."""
    default, about = node.schema.get("default"), line(str(node.schema.get("description", "")))
    parts = [_NAMES[node.kind], "required" if node.required else ""]
    parts.append(f"{json.dumps(default)} by default" if default is not None else "")
    head = ", ".join(part for part in parts if part)
    return f"{head}: {about}" if about else head
