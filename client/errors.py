"""Errors of the client's own that several commands treat alike.

PlanError
├── NotConnected          no Temporal server could be reached or started: exit code 3
│   ├── ServerFailed      the embedded server did not start
│   ├── NoTemporal        there is no `temporal` program, and none could be had
│   └── NoWorker          nobody listens to the plan's queue, so nobody can answer for it
├── PlanNotFound          exit code 4
├── PlanExists            an id that was used before
├── PlanClosed            a message to a plan that has ended
└── BadPlanId             a text that can name no plan
"""

from __future__ import annotations

from plans.errors import PlanError


class NotConnected(PlanError):
    """No Temporal server could be reached; the message names the address and what to do."""

    code = "NOT_CONNECTED"


class ServerFailed(NotConnected):
    """The embedded server could not be started; the message holds the end of its log."""

    code = "SERVER_FAILED"


class NoTemporal(NotConnected):
    """There is no `temporal` program, and none could be had; the message names the ways to get one."""

    code = "NO_TEMPORAL"


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
