"""Templates for the user's side: those of a directory and of the user together, for commands and completion.

May import `client`, `runtime` and `plans`.
"""
