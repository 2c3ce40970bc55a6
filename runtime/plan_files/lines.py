"""On which line each key and element of a document in YAML or JSON is written."""

from __future__ import annotations

from typing import Any

import yaml

Location = tuple[int | str, ...]
"""Keys and indexes, outermost first."""
MAX_LINES = 50_000
"""Keys and elements that are located."""


def lines_of(text: str) -> dict[Location, int]:
    """The line of every key and element of a document; empty where its text is no YAML."""
    found: dict[Location, int] = {}
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError):
        return found
    waiting: list[tuple[Location, Any]] = [((), root)]
    while waiting and (left := MAX_LINES - len(found)) > 0:
        place, node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value[:left]:
                inner = (*place, str(key.value)) if isinstance(key, yaml.ScalarNode) else place
                found[inner] = key.start_mark.line + 1
                waiting.append((inner, value))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value[:left]):
                found[*place, number] = value.start_mark.line + 1
                waiting.append(((*place, number), value))
    return found
