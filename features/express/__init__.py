"""Several quick steps in one activity, where a plan asks for it: `express: true`."""

REACHES_OUT = False
ACTIVITIES = ("segment",)
COMMANDS: dict[str, tuple[str, str]] = {}
