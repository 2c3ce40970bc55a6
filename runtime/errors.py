"""Errors of the connection to a Temporal server, shared by the worker and the client."""

from __future__ import annotations

from plans.errors import PlanError


class NotConnected(PlanError):
    """No Temporal server could be reached or started; the message names the address, or shows the log, and what to do.

    Code NOT_CONNECTED; SERVER_FAILED for the embedded one, NO_TEMPORAL where there is no program to start.
    """

    code = "NOT_CONNECTED"
