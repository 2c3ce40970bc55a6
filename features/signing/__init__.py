"""Signed decisions (PLANS_DECISIONS=signed): only the owner of a state directory's key starts and decides.

docs/operations.md#signed-decisions
"""

REACHES_OUT = True
COMMANDS: dict[str, tuple[str, str]] = {}
