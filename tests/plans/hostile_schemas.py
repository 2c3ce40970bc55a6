"""Schemas of a few lines, each with an answer that would keep whoever applies it busy for minutes."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator


def fanning_out(depth: int) -> dict[str, Any]:
    """A schema of a few lines whose references say to look at a value 2^depth times."""
    both = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(depth)}
    return {"$ref": "#/$defs/l0", "$defs": both | {f"l{depth}": {"type": "integer"}}}


NUMBERS = [[0] * 20_000]
MANY: dict[str, Any] = {f"^x{n}$": {} for n in range(100)}
ENDLESS: dict[str, tuple[dict[str, Any], Any]] = {
    "references that fan out": (fanning_out(40), 1),
    "behind a dialect": (fanning_out(40) | {"$schema": Draft202012Validator.META_SCHEMA["$schema"]}, 1),
    "many for each of many": ({"items": {"anyOf": [{"const": n} for n in range(300)]}}, [299] * 5000),
    "long texts, a long pattern": ({"items": {"not": {"pattern": "a" * 5000}}}, ["b" * 60] * 2500),
    "many patterns, many names": ({"patternProperties": MANY}, {f"name{n}": 0 for n in range(3000)}),
    "long values written out": ({"anyOf": [{"type": "string"}] * 900}, NUMBERS),
    "long values compared": ({"allOf": [{"uniqueItems": True}] * 500}, NUMBERS),
    "patterns that RE2 is slow at": (
        {"not": {"anyOf": [{"pattern": f"^[01]*1[01]{{900}}x{n}$"} for n in range(25)]}}, "01" * 50_000
    ),
    "long lists of names": ({"items": {"anyOf": [{"required": [f"n{n}" for n in range(5000)]}, {}]}}, [{}] * 5000),
}  # fmt: skip
HARMLESS = {"long texts, a long pattern"}
"""RE2 is quick at these: they take a tenth of a second."""
LARGE = {"long values written out", "long values compared"}
"""Few keywords on a large answer: the clock stops them, the count lets them take some seconds."""
