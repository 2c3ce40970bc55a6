"""The user's own editor, for a text that is too long or too structured for a form."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from plansurvive.plans.errors import PlanError


def editor() -> list[str]:
    """The editor command from VISUAL or EDITOR, else vi. Raises PlanError NO_EDITOR if it cannot be parsed."""
    try:
        command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    except ValueError as error:
        raise PlanError(f"EDITOR is not a valid command: {error}", "NO_EDITOR") from None
    return command or ["vi"]


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
