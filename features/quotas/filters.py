"""`plan list --label`: plans with a label, whatever its value, or with that value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plansurvive.client.listing import Listed
from plansurvive.plans.errors import PlanError


def kept(given: Mapping[str, Any]) -> Callable[[Listed], bool]:
    """Whether a plan has all the labels that were given. Raises PlanError BAD_USAGE."""
    wanted = [text.partition("=") for text in given.get("label", [])]
    if any(not name or (equals and not value) for name, equals, value in wanted):
        raise PlanError("write --label NAME or --label NAME=VALUE, as in --label team=billing", "BAD_USAGE")
    return lambda plan: all(
        name in plan.labels and (not equals or plan.labels[name] == value) for name, equals, value in wanted
    )
