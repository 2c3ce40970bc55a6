"""Which workflows there are: what every worker registers, and what recorded histories are replayed with.

May import `workflows`.
"""
