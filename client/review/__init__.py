"""The review screen: a Textual app with a plan's steps, forms and dialogs, in the terminal or a browser.

May import `client`.
"""
