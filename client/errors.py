"""Errors of the client's own that several commands treat alike; those of one place stand there.

PlanError                 plans/errors.py
├── NotConnected          no Temporal server could be reached or started; the code says which: exit code 3
│   └── NoWorker          nobody listens to the plan's queue, or gets on with it (PLAN_STUCK), so nobody can answer
├── PlanNotFound          exit code 4
├── PlanExists            an id that was used before
├── PlanClosed            a message to a plan that has ended
├── BadPlanId             a text that can name no plan
├── SettingError          settings that cannot be used; runtime/settings.py
├── PlanFileError         a plan file that cannot be opened; client/plan_file.py
├── PruneRefused          nothing was removed; client/prune.py
├── WorkerFailed          the background worker did not start: exit code 3; runtime/errors.py
└── InvalidPlan           plans/errors.py
    └── PlanRefused       the same with the file it was read from
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plans.errors import InvalidPlan, PlanError
from runtime.errors import NotConnected

if TYPE_CHECKING:
    from client.plan_file import PlanFile
    from plans.model import Problem


class NoWorker(NotConnected):
    """Nobody listens to the plan's task queue; it waits, and goes on as soon as a worker runs."""

    code = "NO_WORKER"


class PlanNotFound(PlanError):
    """The server knows no such plan."""

    code = "PLAN_NOT_FOUND"


class PlanExists(PlanError):
    """A plan with that id runs, or ran before; ids are never used twice."""

    code = "PLAN_EXISTS"


class PlanClosed(PlanError):
    """The plan has ended: it takes no messages any more."""

    code = "PLAN_CLOSED"


class BadPlanId(PlanError):
    """A text that cannot name a plan."""

    code = "BAD_PLAN_ID"


class PlanRefused(InvalidPlan):
    """A plan file with problems; knows the file, so that they can be shown with their lines."""

    def __init__(self, problems: Sequence[Problem], file: PlanFile) -> None:
        super().__init__(problems)
        self.file = file
