"""What is asked of the events that a plan keeps, besides what `events` decides."""

from __future__ import annotations

from plansurvive.features.waiting.events import state_problem
from plansurvive.plans.run.feature import Rules

RULES = Rules("waiting", problem=state_problem)
