"""Which files a plan has changed, and undoing that (`plan files`, `plan undo`): docs/files.md#undo.

Recording the changes is the core's (`activities/provenance`), as conflicts are found by them; so are the functions of
the client (`client/undo`) and what runs the `undo` of steps.
"""

REACHES_OUT = False
ACTIVITIES = ("file_changes",)
COMMANDS = {
    "files": ("commands:files", "Show the files that each step created, changed and deleted."),
    "undo": ("commands:undo", "Undo a plan or one step: run each `undo`, restore files."),
}
