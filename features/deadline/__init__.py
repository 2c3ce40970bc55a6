"""The deadline of a plan, from its `timeout`: docs/plan-files.md#deadline."""

REACHES_OUT = False
COMMANDS: dict[str, tuple[str, str]] = {}
