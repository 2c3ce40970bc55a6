"""Workers with a workspace each: a directory for each plan, checkpoints of it in storage, taking over a plan's files.

`homes` has the directories, `listing` and `packing` what a checkpoint holds, `checkpoints` takes and restores them, and
`hosting` does it for the plans at a host. The side of the workflow is woven into the core: `workflows/hosts.py`,
`features/children/place.py`, `plans/hosts`.
"""

REACHES_OUT = False
ACTIVITIES = ("take_host", "host_pulse")
COMMANDS: dict[str, tuple[str, str]] = {}
