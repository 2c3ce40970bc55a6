"""A workspace to itself: a plan that needs it waits for the lock on its directory (`workspaceLock`)."""

REACHES_OUT = True
ACTIVITIES = ("lock_workspace", "has_ended")
COMMANDS: dict[str, tuple[str, str]] = {}
