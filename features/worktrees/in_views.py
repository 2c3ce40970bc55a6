"""Where an approval says that its call is made: in a worktree, if that is where the step works.

A client reads no file for it: those in the workspace are others.
"""

from __future__ import annotations

from typing import Any

from plansurvive.features.worktrees.rules import order_of
from plansurvive.plans.in_views import InViews
from plansurvive.plans.model import Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Run


def _card(run: Parted, step: Step) -> dict[str, Any]:
    order = order_of(run, step) if isinstance(run, Run) else None
    return {"workspace": f"worktree of '{order.tree}' of plan {order.plan}"} if order is not None else {}


IN_VIEWS = InViews("worktrees", card=_card)
