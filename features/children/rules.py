"""What a plan takes over of a child plan whose end it did not see."""

from __future__ import annotations

from plansurvive.features.children.accounts import caught_up
from plansurvive.plans.feature import Rules

RULES = Rules("children", caught_up=caught_up)
