"""A plan being edited: edits, the plan's data as a draft, what may not be edited, and edits inside blocks and loops.

It is language, not a feature: people edit, the LLM's choices are applied as edits, and resumed plans are changed.
`plans.execution.revision` puts edits into effect.
"""
