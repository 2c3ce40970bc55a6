"""Turns the bytes or the text of a plan file into data, as JSON or as YAML.

Names ending in .json are JSON, .yaml and .yml YAML; any other text is JSON if it begins like JSON, and YAML otherwise.
Syntax only: `plans.definition.parsing.read_plan` makes a Plan of the data. Raises Unreadable.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from plansurvive.plans.definition.parsing import MAX_BYTES, TOO_LARGE, Unreadable, not_utf8, parse_json
from plansurvive.runtime.plan_files.yaml_reader import parse_yaml

_JSON = re.compile(r"\s*(?:```[a-zA-Z]*\s*)?[{\[]")
"""How JSON begins, also as models write it, between lines with ```."""


def text_of(content: bytes, name: str = "") -> str:
    """The text of a plan file of this name. Raises Unreadable if it has more than MAX_BYTES, or is not UTF-8."""
    if len(content) > MAX_BYTES:
        raise Unreadable("PLAN_TOO_LARGE", TOO_LARGE)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("PLAN_NOT_YAML" if is_yaml(name, "") else "PLAN_NOT_JSON", not_utf8(error)) from None


def data_of(name: str, text: str) -> Any:
    """The data of a plan file; its name says the format. Raises Unreadable."""
    return parse_yaml(text) if is_yaml(name, text) else parse_json(text)


def is_yaml(name: str, text: str) -> bool:
    """Whether a text is YAML, by the ending of its file's name, else by how it begins."""
    ending = PurePath(name).suffix.lower()
    if ending in (".yaml", ".yml"):
        return True
    return ending != ".json" and bool(text.strip()) and not _JSON.match(text)
