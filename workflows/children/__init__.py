"""Steps that are child workflows: agents and plans. Starts, stops and resumes them, and counts what they spend.

`handles` has what both need, `requests` answers whether they may send LLM requests, `parent` is the side of the child.
"""
