"""Views of a run for people and programs: JSON views, text, Markdown, graphs, summary, queries.

May import every other part of `plans`. What a view is made of is below it: `models`, then `steps`, then `progress`.
"""
