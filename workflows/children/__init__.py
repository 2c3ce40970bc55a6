"""Steps that are child workflows: agents and plans. Starts, stops and resumes them, and counts what they spend.

`handles` has what both need, `budget` answers their questions about the LLM budget, `parent` is the side of the child.
"""
