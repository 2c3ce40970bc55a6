"""Plans that run as steps of other plans: what one is made of, how it is checked, what it reports, what its value is.

The tool `plan` names a child plan; `features.children` starts it. Pure, as all of `plans`.
"""
