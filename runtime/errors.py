"""Errors shared by the worker and the client: no server, no background worker."""

from __future__ import annotations

from plansurvive.plans.errors import PlanError


class NotConnected(PlanError):
    """No Temporal server could be reached or started. The message has the address, or the end of the log, and a remedy.

    Code NOT_CONNECTED; NO_NAMESPACE; SERVER_FAILED and SERVER_OLDER for the embedded server; NO_TEMPORAL without a
    program to start.
    """

    code = "NOT_CONNECTED"


class WorkerFailed(PlanError):
    """The background worker did not start; the message contains the end of its log."""

    code = "WORKER_FAILED"
