"""Edits of plans that are open, by people and programs: docs/plan-files.md.

in_workflow: the update `edit`; all edits of a message or none, as `plans.execution.apply_edits` validates them.
"""

REACHES_OUT = False
COMMANDS: dict[str, tuple[str, str]] = {}
