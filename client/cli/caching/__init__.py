"""The command `plan why`.

May import what `client.cli` may.
"""
