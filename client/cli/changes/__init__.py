"""The commands about what plans changed: `plan files` and `plan undo`.

May import `client` and `client.cli`.
"""
