"""A plan being edited: its data as a draft, what may not be edited, and edits inside blocks and loops.

`plans.execution.apply_edits` applies edits with it, and `plans.execution.revision` puts them into effect.
"""
