"""Edits of plans that are open, by people and programs: docs/plan-files.md.

in_workflow: the update `edit`; all edits of a message or none, as `plans.editing.apply_edits` validates them. What
edits are is of the core (`plans.editing`): recovery and resumed plans apply them as well.
"""

REACHES_OUT = False
COMMANDS = {
    "edit": ("commands:edit", "Edit steps that have not started, or the plan itself."),
    "add": ("commands:add", "Add a step."),
    "remove": ("commands:remove", "Remove a step that no other step depends on."),
    "move": ("commands:move", "Move a step behind another one in the list."),
    "skip": ("commands:skip", "Skip a step."),
    "unskip": ("commands:unskip", "Undo a skip."),
}
LISTED = {
    "edit": ("Change", "unpause"),
    "add": ("Change", "edit"),
    "remove": ("Change", "add"),
    "move": ("Change", "remove"),
    "skip": ("Change", "move"),
    "unskip": ("Change", "skip"),
}
