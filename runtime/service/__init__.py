"""What keeps the server and workers of a machine running, and what ends them.

`connection.py` finds a server again that was started on other ports; `presence.py` ends background workers that nothing
needs any more; `apps/service` makes a user service of `plan up`.
"""
