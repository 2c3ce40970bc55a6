"""The review screen of `plan review`: a Textual app with a plan's steps, forms and dialogs, in the terminal.

`screen.py` shows it.
"""
