"""The review screen: a Textual app over a plan's steps, forms, dialogs, and the same in a browser.

May import `client`.
"""
