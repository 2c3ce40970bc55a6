"""Plans that run as steps of other plans: what a plan knows of them, and what its views show.

The tool `plan` names a child plan; `features.children` starts it. Pure, as all of `plans`.
"""
