"""Several quick steps in one activity. Not in use yet: no plan can ask for it."""

REACHES_OUT = False
COMMANDS: dict[str, tuple[str, str]] = {}
