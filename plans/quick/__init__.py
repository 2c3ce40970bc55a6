"""Quick calls: which calls of tools may be made many to a workflow task (`durable: batch`), and what bounds that. Pure.

May import `plans.model`.
"""
