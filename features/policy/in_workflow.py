"""The approvals that are collected in a run: none comes with its start, as nobody has verified it, nor from an earlier
run. And the message that takes a decision back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio import workflow

from plansurvive.features.policy import withdrawing
from plansurvive.features.policy.messages import Withdraw
from plansurvive.features.policy.model import People
from plansurvive.features.policy.plan_terms import problems
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.model import Problem
from plansurvive.plans.run import Run
from plansurvive.workflows.feature import InRun, update


class Policy(InRun):
    """The policy in a run: what people take back of what they have decided."""

    feature = "policy"
    begins_empty = True

    @classmethod
    def unfit(cls, run: Run, facts: Facts) -> Sequence[Problem]:
        """A plan that says who must approve a step begins only where that can be told."""
        return list(problems(run.plan, facts.tools, knows_people=People.feature in facts.parts))

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
