"""Why a person is asked about a recovery."""

from __future__ import annotations

from plansurvive.plans.in_views import InViews

IN_VIEWS = InViews("planning", reasons={"recovery": "an LLM proposes how to recover the step, which failed"})
