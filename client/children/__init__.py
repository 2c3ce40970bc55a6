"""Child plans for clients: how a step in one is named from its parent, how they are checked, listed and resumed.

`family` reads all workflows whose work is a plan's, `naming` finds the plan in which a step is decided, `resuming` what
a resumed plan continues, `checking` what a plan file runs as steps.
"""
