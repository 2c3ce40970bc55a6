"""A step in the editor of the user's choice, as JSON: what was changed becomes edits of its fields."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plans.edits import Edit, SetField
from plans.errors import PlanError
from plans.execution.apply_edits import STEP_FIELDS


def editor() -> list[str]:
    """The command of VISUAL or EDITOR, else vi. Raises PlanError NO_EDITOR when it cannot be read."""
    try:
        command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    except ValueError as error:
        raise PlanError(f"EDITOR is no command: {error}", "NO_EDITOR") from None
    return command or ["vi"]


def as_text(step: Mapping[str, Any]) -> str:
    """The step as it is put before the user; control characters are written as escapes."""
    known = {name: value for name, value in step.items() if name == "id" or name in STEP_FIELDS}
    return json.dumps(known, indent=2, ensure_ascii=not json.dumps(known, ensure_ascii=False).isprintable()) + "\n"


def let_edit(text: str) -> str:
    """What the user makes of a text. Raises PlanError NO_EDITOR when the editor cannot be run, or failed."""
    with tempfile.TemporaryDirectory(prefix="plan-") as directory:
        file = Path(directory) / "step.json"
        file.write_text(text, encoding="utf-8")
        command = [*editor(), str(file)]
        try:
            code = subprocess.run(command, check=False).returncode
        except OSError as error:
            raise PlanError(f"{command[0]} cannot be run: {error.strerror}; set EDITOR", "NO_EDITOR") from None
        if code:
            raise PlanError(f"{command[0]} ended with exit code {code}; nothing was changed", "NO_EDITOR")
        return file.read_text(encoding="utf-8", errors="replace")


def edits_of(step: Mapping[str, Any], text: str) -> list[Edit]:
    """The edits that make the step what the text says. Raises PlanError PLAN_SCHEMA when they cannot."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PlanError(f"what you wrote is no JSON: {error}", "PLAN_SCHEMA") from None
    if not isinstance(found, dict) or found.get("id") != step["id"]:
        raise PlanError(f"write one object, and leave its id '{step['id']}' as it is", "PLAN_SCHEMA")
    strange = sorted(found.keys() - STEP_FIELDS - {"id"})
    if strange:
        text = f"a step has no field '{strange[0]}'; these can be set: {', '.join(sorted(STEP_FIELDS))}"
        raise PlanError(text, "UNKNOWN_FIELD")
    changed = [name for name in sorted(STEP_FIELDS) if found.get(name) != step.get(name)]
    return [SetField(op="set", step_id=step["id"], path=name, value=found.get(name)) for name in changed]
