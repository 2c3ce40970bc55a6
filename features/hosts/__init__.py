"""Workers with a workspace each: a directory for each plan, checkpoints of it in storage, taking over a plan's files.

`homes` has the directories, `listing` and `packing` what a checkpoint holds, `checkpoints` takes and restores them, and
`hosting` does it for the plans at a host. `place` moves a plan whose host is lost. What a run knows of its host is in
the core: `plans/hosts`.
"""

REACHES_OUT = False
ACTIVITIES = ("take_host", "host_pulse")
COMMANDS: dict[str, tuple[str, str]] = {}
