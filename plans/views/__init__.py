"""A run as people and programs see it: JSON views, text, Markdown, the summary, the queries.

May import every other part of `plans`.
"""
