"""What a list of plans shows of each: how far it is, what it awaits since when, and whether a worker serves it.

`client.listing` reads the server's index; here open plans are asked. May import plans, runtime and the client's root.
"""
