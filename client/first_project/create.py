"""Writes the files of a new project with plans, and leaves alone what is there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from plansurvive.plans.errors import PlanError

SCHEMA = ".plans/plan.schema.json"
"""The JSON Schema of plan files, for editors. Ours: written again when it differs, as after an upgrade."""
EDITOR = ".vscode/settings.json"
PLAN, TOOL = "plan.yaml", "tools/words.py"
AGENTS = "AGENTS.md"
"""What coding agents read about a repository. The section between our marks is ours; the rest is not touched."""
_BEGIN, _END = "<!-- plans: begin", "<!-- plans: end -->"
MAX_AGENTS_BYTES = 1024 * 1024

State = Literal["created", "updated", "unchanged", "kept"]


@dataclass(frozen=True)
class File:
    """One file of the project, and what became of it. `kept`: it was there with another content, and still is."""

    path: str
    state: State


class NoProject(PlanError):
    """The project cannot be made there. Codes: NOT_A_DIRECTORY, NO_PERMISSION."""


def create(directory: Path, schema: dict[str, Any]) -> list[File]:
    """Write the first plan, a tool with its test, a section for agents, the schema and the editor's settings.

    `directory` is made if it does not exist. Raises NoProject; files written before the error stay.
    """
    wanted = {
        **_samples(files("plansurvive.client.first_project") / "files"),
        EDITOR: _json({"yaml.schemas": {f"./{SCHEMA}": [PLAN, "*.plan.yaml"]}}),
        SCHEMA: _json(schema),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return [File(path, _written(directory, path, text)) for path, text in wanted.items()]
    except (FileExistsError, NotADirectoryError) as error:
        text = f"{error.filename} is not a directory; name another one, or move it away"
        raise NoProject(text, "NOT_A_DIRECTORY") from None
    except OSError as error:
        text = f"{error.filename} cannot be written: {error.strerror}; choose another directory or change its mode"
        raise NoProject(text, "NO_PERMISSION") from None


def editor_setting() -> str:
    """The line to add to editor settings that were there before."""
    return f'"yaml.schemas": {{"./{SCHEMA}": ["{PLAN}", "*.plan.yaml"]}}'


def section_for_agents() -> str:
    """The section about plans for the AGENTS.md of a repository, between its marks."""
    return (files("plansurvive.client.first_project") / "files" / f"{AGENTS}.txt").read_text("utf-8")


def _written(directory: Path, path: str, text: str) -> State:
    """Write a file. An AGENTS.md of the user's with our section in it gets the present one."""
    place = directory / path
    if path == AGENTS and place.is_file() and not place.is_symlink():
        found = place.read_bytes()[:MAX_AGENTS_BYTES].decode("utf-8", "surrogateescape")
        before, begun, rest = found.partition(_BEGIN)
        _, ended, after = rest.partition(_END)
        if begun and ended and place.stat().st_size <= MAX_AGENTS_BYTES:
            new = before + text.rstrip("\n") + after
            if new == found:
                return "unchanged"
            place.write_bytes(new.encode("utf-8", "surrogateescape"))
            return "updated"
    return _write(place, text, ours=path == SCHEMA)


def _samples(folder: Traversable, above: str = "") -> dict[str, str]:
    """The sample files by path. Python files end in .txt, so that nothing takes them for modules of ours."""
    found: dict[str, str] = {}
    for each in sorted(folder.iterdir(), key=lambda one: one.name):
        path = above + each.name.removesuffix(".txt")
        found |= _samples(each, f"{path}/") if each.is_dir() else {path: each.read_text("utf-8")}
    return found


def _write(path: Path, text: str, *, ours: bool) -> State:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:  # never through a link, and never over a file
            file.write(text)
        return "created"
    except FileExistsError:
        if path.is_symlink() or not path.is_file():
            return "kept"
        if path.read_bytes() == text.encode():
            return "unchanged"
        if not ours:
            return "kept"
        path.write_text(text, "utf-8")
        return "updated"


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
