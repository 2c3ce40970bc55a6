"""Errors of what a process runs on, shared by the worker and the client: no server, no background worker."""

from __future__ import annotations

from plans.errors import PlanError


class NotConnected(PlanError):
    """No Temporal server could be reached or started; the message names the address, or shows the log, and what to do.

    Code NOT_CONNECTED; SERVER_FAILED for the embedded one, NO_TEMPORAL where there is no program to start.
    """

    code = "NOT_CONNECTED"


class WorkerFailed(PlanError):
    """The background worker did not start; the message holds the end of its log."""

    code = "WORKER_FAILED"
