"""A host's own workspace: a directory for each plan, checkpoints of it in storage, and taking over a plan's files.

`homes` has the directories, `listing` and `packing` what a checkpoint holds, `checkpoints` takes and restores them, and
`hosting` has the activities. May import `plans`, `runtime`, `activities.workspace` and `activities.tools`.
"""
