"""Several quick steps in one activity."""

REACHES_OUT = False
COMMANDS: dict[str, tuple[str, str]] = {}
