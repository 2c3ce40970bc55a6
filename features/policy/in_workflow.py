"""The approvals that are collected in a run: none comes with its start, as nobody has verified it, nor from an earlier
run. And the message that takes a decision back.
"""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from plansurvive.features.policy import withdrawing
from plansurvive.features.policy.messages import Withdraw
from plansurvive.workflows.feature import InRun, update


class Policy(InRun):
    """The policy in a run: what people take back of what they have decided."""

    feature = "policy"
    begins_empty = True

    @update(
        "withdraw", Withdraw,
        'Take back your own decision, until the step starts: {"stepId": "...", "by": "..."}',
        signed=True, validator="may_withdraw",
    )  # fmt: skip
    def withdraw(self, message: Withdraw) -> dict[str, Any]:
        """Takes back the sender's own approval or denial of a step that has not started, signed as decisions are; the
        step awaits another one. Approvals of others that it needs stay. Returns `{stepId, text}`. Refused:
        `NOT_DECIDED`, `TOO_LATE` once a call has used it, `UNVERIFIED` without the key that signed it.
        """
        text = withdrawing.withdraw(self.execution.run, message, workflow.now())
        self.execution.wake()
        return {"stepId": message.step_id, "text": text}

    def may_withdraw(self, message: Withdraw) -> None:
        """Refuse what takes nothing back."""
        withdrawing.mine(self.execution.run, message)


IN_RUN, WORKFLOWS = Policy, ()
