"""Errors of the client's own that several commands treat alike.

PlanError
└── NotConnected          no Temporal server could be reached or started: exit code 3
    ├── ServerFailed      the embedded server did not start
    └── NoTemporal        there is no `temporal` program, and none could be had
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
