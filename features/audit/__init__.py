"""Who did what to a plan, as a record that can be verified (`plan audit`): docs/operations.md#who-did-what."""

REACHES_OUT = True
COMMANDS = {"audit": ("commands:audit", "Show who did what to a plan, and verify that record.")}
LISTED = {"audit": ("Look", "history")}
