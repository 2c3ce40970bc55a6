"""Replay as evaluation: the LLM requests of a recorded run asked again, its tool calls answered from the record.

The workflow's own code is played in this process, without a server; no activity is ever run. Nothing is written.
`commands.py` is `plan evaluate`.
"""
