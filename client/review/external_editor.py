"""Opens a step as JSON in the user's editor and turns the changes into edits of its fields."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plansurvive.plans.edits import Edit, SetField
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.apply_edits import STEP_FIELDS


def editor() -> list[str]:
    """The editor command from VISUAL or EDITOR, else vi. Raises PlanError NO_EDITOR if it cannot be parsed."""
    try:
        command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    except ValueError as error:
        raise PlanError(f"EDITOR is not a valid command: {error}", "NO_EDITOR") from None
    return command or ["vi"]


def as_text(step: Mapping[str, Any]) -> str:
    """The step as JSON for the editor; control characters are written as escapes."""
    known = {name: value for name, value in step.items() if name == "id" or name in STEP_FIELDS}
    return json.dumps(known, indent=2, ensure_ascii=not json.dumps(known, ensure_ascii=False).isprintable()) + "\n"


def let_edit(text: str) -> str:
    """Let the user edit a text; returns the result. Raises PlanError NO_EDITOR if the editor cannot be run or fails."""
    with tempfile.TemporaryDirectory(prefix="plan-") as directory:
        file = Path(directory) / "step.json"
        file.write_text(text, encoding="utf-8")
        command = [*editor(), str(file)]
        try:
            code = subprocess.run(command, check=False).returncode
        except OSError as error:
            raise PlanError(
                f"cannot run {command[0]}: {error.strerror}; set EDITOR to your editor", "NO_EDITOR"
            ) from None
        if code:
            raise PlanError(f"{command[0]} ended with exit code {code}; nothing was changed", "NO_EDITOR")
        return file.read_text(encoding="utf-8", errors="replace")


def edits_of(step: Mapping[str, Any], text: str) -> list[Edit]:
    """The edits that turn the step into the text. Raises PlanError PLAN_SCHEMA or UNKNOWN_FIELD."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PlanError(f"your text is not valid JSON: {error}", "PLAN_SCHEMA") from None
    if not isinstance(found, dict) or found.get("id") != step["id"]:
        raise PlanError(f"write one JSON object and do not change its id '{step['id']}'", "PLAN_SCHEMA")
    unknown = sorted(found.keys() - STEP_FIELDS - {"id"})
    if unknown:
        text = f"a step has no field '{unknown[0]}'; these can be set: {', '.join(sorted(STEP_FIELDS))}"
        raise PlanError(text, "UNKNOWN_FIELD")
    changed = [name for name in sorted(STEP_FIELDS) if found.get(name) != step.get(name)]
    return [SetField(op="set", step_id=step["id"], path=name, value=found.get(name)) for name in changed]
