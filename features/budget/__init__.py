"""What a plan may spend on LLM requests: docs/plan-files.md#budget.

rules: whether the next request may be sent. in_workflow: a person is asked to extend the limits.
"""

REACHES_OUT = False
COMMANDS: dict[str, tuple[str, str]] = {}
