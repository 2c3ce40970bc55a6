"""Quick calls: which calls of tools are made many to a workflow task (`durable: batch`), and what bounds that. Pure.

Only plans that began before 2026-11-23 make them (`Facts.one_by_one`); their histories replay for ever.

May import `plans.model`.
"""
