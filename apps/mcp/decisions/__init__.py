"""A person decides through the MCP client of an agent: what is asked as an elicitation, and what comes of the answer.

`open.py` finds what waits, `asks.py` and `forms.py` make the request of it (pure), `answers.py` sends the decision,
`replies.py` remembers what was replied, `rules.py` says who may be asked, `flow.py` asks during a call. May import what
`client` may, and nothing of the tasks extension.
"""
