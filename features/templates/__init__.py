"""Plans saved under a name, each content as a version of its own: docs/templates.md."""

REACHES_OUT = False
COMMANDS = {"template": ("commands:app", "Save plans under a name, with versions, and run them.")}
LISTED = {"template": ("Run", "import")}
