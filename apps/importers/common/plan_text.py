"""An imported plan as YAML: what was not carried over stands as comments, at the top and at the steps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from plansurvive.apps.importers.common.report import Entry, Imported
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.plan_files.yaml_reader import parse_yaml

NOTE = "x-import"
"""Key of a step that stands for a comment until the text is written: numbers of entries in the report."""
MAX_AT_TOP = 200
_MARK = re.compile(rf"^(\s*)- {NOTE}: ['\"]?([0-9,]+)['\"]?\n\s+", re.MULTILINE)
_NAMES = {"github": "a GitHub Actions workflow", "serverless": "a Serverless Workflow"}


def text_of(imported: Imported, source: str) -> str:
    """The plan file. Parsing it gives `data_of(imported)`."""
    body = yaml.dump(
        imported.plan, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=118, default_flow_style=False
    )
    entries = imported.report.entries
    body = _MARK.sub(lambda match: _comments(match[1], match[2], entries) + f"{match[1]}- ", body)
    text = "\n".join([*_head(imported, source), "", body])
    if parse_yaml(text) != data_of(imported):  # a text that YAML cannot show as it is
        text = "\n".join([*_head(imported, source), "", json.dumps(data_of(imported), indent=2), ""])
    return text


def data_of(imported: Imported) -> dict[str, Any]:
    """The plan without the marks of comments."""
    found = _unmarked(imported.plan)
    assert isinstance(found, dict)  # noqa: S101 - for mypy
    return found


def row(entry: Entry) -> str:
    """An entry on one line."""
    place = f"line {entry.line}, {entry.where}" if entry.line else entry.where
    return line(f"{place}: {entry.what}" + (f"; by hand: {entry.do}" if entry.do else ""))


def _head(imported: Imported, source: str) -> Iterator[str]:
    entries = imported.report.entries
    yield f"# Imported from {line(source)}, {_NAMES[imported.kind]}, by `plan import`."
    for kind, title in (("loss", "Not carried over:"), ("note", "To know:")):
        rows = [row(entry) for entry in entries if entry.kind == kind]
        yield from [f"# {title}", *(f"# - {each}" for each in rows[:MAX_AT_TOP])] if rows else []
        if len(rows) > MAX_AT_TOP:
            yield f"# - and {len(rows) - MAX_AT_TOP} more"


def _comments(indent: str, numbers: str, entries: list[Entry]) -> str:
    found = [entries[int(number)] for number in numbers.split(",") if int(number) < len(entries)]
    return "".join(f"{indent}# {line(each.what)}" + (f"; {line(each.do)}" if each.do else "") + "\n" for each in found)


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(each) for name, each in value.items() if name != NOTE}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    """Writes values so that our reader, which follows YAML 1.2, reads the same ones."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never an alias: people read the text."""
        del data
        return True


_OTHERWISE = re.compile(
    r"[-+.]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?|0[ox][0-9a-fA-F]+|~|null|true|false|[-+]?\.(?:inf|nan)", re.IGNORECASE
)
"""Texts that are no strings to a reader of YAML 1.2 without quotes."""


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else '"' if _OTHERWISE.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _string)
