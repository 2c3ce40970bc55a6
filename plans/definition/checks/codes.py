"""The codes of failed steps, for hints about misspelt ones. Tools may have others."""

from __future__ import annotations

from plansurvive.plans.error_codes import STEPS

_OF_THE_CHECK = """
INVALID_ARGS ARGS_TOO_LARGE BAD_REFERENCE BAD_EXPRESSION EXPRESSION_TOO_COSTLY UNKNOWN_TOOL SECRET_REFUSED
SECRET_MISPLACED UNKNOWN_SECRET
"""
STEP_CODES = frozenset((*STEPS, *_OF_THE_CHECK.split()))
