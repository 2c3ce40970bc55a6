"""Messages to people about plans: what waits for them, and how plans end. docs/notifications.md."""

REACHES_OUT = True
READS = {"notify.toml": ("PLANS_NOTIFY", "targets:read_targets")}
ACTIVITIES = ("notify", "tell")
COMMANDS = {"notify": ("commands:app", "List the targets of notifications, and test one.")}
