"""The user's side: one typed function per verb (`client.runs`), the command line, the review screen.

May import `plans`, `runtime`, `activities` and `workflows`; nothing imports it.
"""
