"""Which files a plan has changed, and undoing that (`plan files`, `plan undo`): docs/files.md#undo.

verbs: lists and undoes, from the client. family: the workflows whose work is the plan's. restored and changed: what has
become of its files since it ended. undo_rules: what is restored, and why not. Recording the changes is the core's
(`activities/provenance`), as conflicts are found by them; so is what runs the `undo` of steps, as plans that roll back
need it, and which steps were undone (`client.undone`), as resuming does.
"""

REACHES_OUT = False
ACTIVITIES = ("file_changes",)
COMMANDS = {
    "files": ("commands:files", "Show the files that each step created, changed and deleted."),
    "undo": ("commands:undo", "Undo a plan or one step: run each `undo`, restore files."),
}
LISTED = {"files": ("Look", "logs"), "undo": ("After the end", "rerun")}
