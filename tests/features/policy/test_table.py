"""Whether a call is made: each verdict of the policy with all that a plan and a person may say, every combination.

The rules of the table are written out in `expected`; a workflow is played by the pure functions that one uses.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from plansurvive.features.policy.current import Current
from plansurvive.features.policy.judging import Asker, Judged
from plansurvive.features.policy.model import JudgedCall, Ruling
from plansurvive.features.policy.policy_file import FILE
from plansurvive.features.policy.rules import ASKS, RULES
from plansurvive.features.policy.ruling import Rulings
from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.next_action import Ask, Skip, after_timeout, next_action
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Retry, ToolSpec
from plansurvive.plans.run import Options, Result
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.run.step_call import digest_of, upcoming
from plansurvive.runtime.settings import Settings
from tests.features.policy.test_rules import NOW, run

VERDICTS = ("", "allow", "ask", "deny")
STATED = (None, True, False)
"""The step's `requiresApproval`."""
DEFAULTS = ("never", "always")
"""Whether the tool asks if the plan says nothing."""
WAIVERS = ("", "--yes", "--remember")
DECIDED = ("", "approved", "denied", "late")
"""What a person who is asked decides; `late`: nothing in time, and the plan says `onTimeout: approve`."""


ENDS = {"": "asks", "denied": "DENIED"}


def expected(verdict: str, stated: bool | None, default: str, waiver: str, decided: str) -> str:
    """What becomes of the call: made, asks, or the code with which its step ends."""
    by_plan = stated is True and waiver != "--yes"
    by_tool = stated is None and default == "always" and not waiver and verdict == ""
    if by_plan or by_tool or verdict == "ask":
        if decided in ENDS:
            return ENDS[decided]
        if decided == "late" and verdict == "ask":
            return "NOBODY_ANSWERED"
    return "POLICY_DENIED" if verdict == "deny" else "made"


async def outcome(rulings: Rulings, stated: bool | None, default: Any, waiver: str, decided: str) -> str:
    """Play the step until it is made, ended, or waits for a person."""
    spec = ToolSpec(name="t", description="", args_schema={}, approval=default, judged=True)
    late = {"approval": {"timeout": 5, "onTimeout": "approve"}} if decided == "late" else {}
    found = run(Options(by="ann", approve_all=waiver == "--yes"), spec, requiresApproval=stated, **late)
    step, rules, schedule = found.plan.steps[0], RuleSet([RULES]), Schedule(found)
    schedule.begin(NOW)
    if waiver == "--remember":
        found.remembered[upcoming(found, step).call.kind] = "ann"
    must_ask = False
    for _ in range(6):
        action, call = next_action(schedule, "s"), upcoming(found, step).call
        if isinstance(action, Skip):
            return action.code or ""
        if isinstance(action, Ask) or must_ask:
            if not decided:
                return "asks"
            schedule.ask("s", NOW)
            approvals.ask(found, "s", call.args, digest_of(call))
            person = Decide(step_id="s", approved=decided == "approved", by="bob")
            late_one = after_timeout(schedule, "s")
            if isinstance(late_one, Decide):
                approvals.decide(found, late_one, NOW, "timeout", rules=rules)
            else:
                approvals.decide(found, person, NOW, "update", rules=rules)
            schedule.answered("s")
            must_ask = False
            continue
        is_approved = "s" in found.decisions or approvals.is_waived(found, step, call)
        sent = Call(
            args={}, plan_id="p", step_id="s", key="p/s", workspace="/w", timeout=1, retry=Retry(), approved=is_approved
        )
        said = rules.extended(found, step, sent).part(JudgedCall)
        ruling, error = await rulings.of(Judged("t", {}, asker=Asker.of(said)), said, approved=is_approved)
        if error is None or error.code != ASKS:
            return error.code if error else "made"
        failure = Result(ok=False, code=error.code, error=error.message, timestamp=NOW)
        if rules.failed(found, step, Return(duration=0.0, parts={Ruling.feature: ruling}), failure, NOW):
            approvals.void(found, "s", NOW)
        must_ask = "s" not in found.decisions
    raise AssertionError("it never ends")


@pytest.mark.parametrize("verdict", VERDICTS)
async def test_every_combination(verdict: str, tmp_path: Path) -> None:
    fits = 'decide = "deny"\ntool = "another"' if verdict == "" else f'decide = "{verdict}"'
    (tmp_path / FILE).write_text(f'[[rule]]\nname = "r"\n{fits}')
    rulings = Rulings(Current(Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path)})))
    for case in product(STATED, DEFAULTS, WAIVERS, DECIDED):
        assert await outcome(rulings, *case) == expected(verdict, *case), case
