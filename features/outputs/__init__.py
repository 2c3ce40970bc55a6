"""What commands write, attempt by attempt, read from where it is stored (`plan logs`): docs/tools.md#long-output.

Recording it is the core's (`activities/outputs`), as the value of a command's step is made of it.
"""

REACHES_OUT = False
COMMANDS = {"logs": ("commands:logs", "Show what commands write, attempt by attempt.")}
LISTED = {"logs": ("Look", "watch")}
