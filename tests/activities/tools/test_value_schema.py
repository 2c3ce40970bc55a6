"""The schema of a tool's value from its return annotation: TypedDicts of `typing` are closed on every Python."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

import pytest

from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.activities.tools.value_schema import value_schema


class Part(TypedDict):
    name: str
    size: NotRequired[int]


class Found(TypedDict):
    parts: list[Part]
    first: Part | None


PART = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (Part, PART),
        (list[Part], {"type": "array", "items": PART}),
        (dict[str, Part], {"type": "object", "additionalProperties": PART}),
        (Part | None, {"anyOf": [PART, {"type": "null"}]}),
        (
            Found,
            {
                "type": "object",
                "properties": {
                    "parts": {"type": "array", "items": PART},
                    "first": {"anyOf": [PART, {"type": "null"}]},
                },
                "additionalProperties": False,
            },
        ),
        (Any, None),
        (None, None),
    ],
)
def test_annotations_are_described(annotation: Any, schema: dict[str, Any] | None) -> None:
    assert value_schema(annotation) == schema


def test_the_values_of_the_built_in_tools_are_known() -> None:
    """Without it `{{look.output}}` of a command passes `plan check`. The others return what a file or event holds."""
    unknown = {name for name, tool in builtin_tools().items() if tool.spec.value_schema is None}
    assert unknown == {"read_json", "wait_for"}
