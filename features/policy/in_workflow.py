"""The approvals that are collected in a run: none comes with its start, as nobody has verified it, nor from an earlier
run.
"""

from __future__ import annotations

from plansurvive.workflows.feature import InRun


class Policy(InRun):
    """The policy in a run does nothing by itself."""

    feature = "policy"
    begins_empty = True


IN_RUN, WORKFLOWS = Policy, ()
