"""A workspace to itself: a plan that needs it waits for the lock on its directory (`workspaceLock`)."""

REACHES_OUT = True
COMMANDS: dict[str, tuple[str, str]] = {}
