"""What a plan would do if it were started now, without starting it (`plan run --dry-run`): docs/dry-run.md."""

from __future__ import annotations

REACHES_OUT = False
COMMANDS: dict[str, tuple[str, str]] = {}
