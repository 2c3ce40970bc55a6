"""Child plans for clients: how a step in one is named from its parent, how they are unpaused and resumed.

`naming` finds the plan in which a step is decided, `resuming` what a resumed plan continues.
"""
