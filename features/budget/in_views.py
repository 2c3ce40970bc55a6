"""Why a person is asked about an LLM budget."""

from __future__ import annotations

from plansurvive.plans.in_views import InViews

IN_VIEWS = InViews("budget", reasons={"budget": "the plan's LLM budget is used up"})
