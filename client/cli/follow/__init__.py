"""Following a plan in a terminal: the live board, plain lines, catching up, Ctrl-C.

May import `client` and `client.cli`.
"""
