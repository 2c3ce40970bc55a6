"""What a plan tells its worker's policy of a call: who chose it, what people decided, and what would ask anyway."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.express.carrying import carried
from plansurvive.features.policy.in_views import IN_VIEWS
from plansurvive.features.policy.model import JudgedCall, Origin, Ruling, Spoken
from plansurvive.features.policy.rules import RULES, origin_of
from plansurvive.plans.activity_io import Call, Facts, Return
from plansurvive.plans.change_log import Revision
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Plan, Retry, ToolSpec
from plansurvive.plans.run import Decision, Options, Result, Run, run_of
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.run.step_call import upcoming

NOW = datetime(2026, 11, 28, tzinfo=UTC)
SPEC = ToolSpec(name="t", description="", args_schema={}, approval="always", judged=True)


def run(options: Options | None = None, spec: ToolSpec = SPEC, **step: Any) -> Run:
    plan = Plan.model_validate(
        {"id": "p", "title": "nightly", "steps": [{"id": "s", "description": "", "tool": "t", "args": {}, **step}]}
    )
    return Run.of(plan, options or Options(by="ann"), Facts(tools={"t": spec}), {})


@pytest.mark.parametrize(
    ("changes", "origin"),
    [
        ({}, "person"), ({"literal": True}, "agent"), ({"request": "do it"}, "llm"),
        ({"options": Options(waivers=False)}, ""),
        ({"options": Options(parts={"policy": Origin(origin="agent")})}, "agent"),
        ({"options": Options(parts={"policy": {"origin": "llm"}})}, "llm"),
        ({"options": Options(waivers=False), "request": "x"}, "llm"),
    ],
)  # fmt: skip
def test_who_chose_a_call(changes: dict[str, Any], origin: str) -> None:
    found = run().model_copy(update=changes)
    assert origin_of(found, found.plan.steps[0]) == origin


def test_a_recovered_step_is_the_llms() -> None:
    found = run()
    found.steps["s"].mended = "another way"
    assert origin_of(found, found.plan.steps[0]) == "llm"


@pytest.mark.parametrize(
    "changes",
    [
        {"request": "do it"},
        {"options": Options(waivers=False)},
        {"revisions": [Revision(version=2, by="llm", time=NOW)]},
    ],
    ids=str,
)
def test_a_segment_knows_who_chose_its_calls(changes: dict[str, Any]) -> None:
    found = run().model_copy(update=changes)
    there = run_of(carried(Schedule(found), ["s"], 1).run)
    assert origin_of(there, there.plan.steps[0]) == origin_of(found, found.plan.steps[0]) != "person"


def test_a_child_plan_has_the_origin_of_the_plan_above() -> None:
    rules = RuleSet([RULES])
    found = run().model_copy(update={"literal": True})
    by_ann = [Spoken(by="ann")]
    assert rules.parts_for_child(found, found.plan.steps[0], None) == {"policy": Origin(origin="agent", authors=by_ann)}
    assert rules.parts_for_child(run(), found.plan.steps[0], None) == {"policy": Origin(authors=by_ann)}
    plain = run(spec=SPEC.model_copy(update={"judged": False})).model_copy(update={"literal": True})
    assert rules.parts_for_child(plain, found.plan.steps[0], None) == {}


def test_a_worker_that_judges_asks_by_itself() -> None:
    for judged in (False, True):
        found = run(spec=SPEC.model_copy(update={"judged": judged}))
        step = found.plan.steps[0]
        assert approvals.is_needed(found, step, upcoming(found, step).call) is not judged


@pytest.mark.parametrize(
    ("options", "step"), [(Options(), {}), (Options(approve_all=True), {}), (Options(), {"requiresApproval": False})]
)
def test_once_the_policy_has_asked_nothing_waives_it(options: Options, step: dict[str, Any]) -> None:
    found = run(options, **step)
    one, left = (
        found.plan.steps[0],
        Return(duration=0.0, parts={"policy": Ruling(decide="ask", reason="rule 'a' asks")}),
    )
    failure = Result(ok=False, code="APPROVAL_REQUIRED", error="", timestamp=NOW)
    assert RuleSet([RULES]).failed(found, one, left, failure, NOW) is False
    call = upcoming(found, one).call
    assert approvals.is_needed(found, one, call)
    assert not approvals.is_waived(found, one, call)
    assert approvals.refused_waiver(found, one) == "rule 'a' asks"


def test_whoever_decides_before_the_policy_asks_is_compared_with_the_authors() -> None:
    found = run(requiresApproval=True)
    found.starter = "ann"
    found.decisions["s"] = Decision(approved=True, by="ann", signed="ann", time=NOW)
    call = Call(args={}, plan_id="p", step_id="s", key="p/s", workspace="/w", timeout=1, retry=Retry(), approved=True)
    said = RuleSet([RULES]).extended(found, found.plan.steps[0], call).part(JudgedCall)
    assert ([each.by for each in said.decided], [each.signed for each in said.authors]) == (["ann"], ["ann"])


@pytest.mark.parametrize("part", [None, {"decide": "no"}, Ruling(decide="deny"), Ruling(decide="allow")])
def test_nothing_follows_from_anything_else(part: object) -> None:
    found = run()
    left = Return(duration=0.0, parts={} if part is None else {"policy": part})
    failure = Result(ok=False, code="APPROVAL_REQUIRED", error="", timestamp=NOW)
    assert RuleSet([RULES]).failed(found, found.plan.steps[0], left, failure, NOW) is False
    assert found.unwaived == {}


def test_plan_show_says_what_the_policy_said() -> None:
    found = run()
    state, step = found.steps["s"], found.plan.steps[0]
    assert IN_VIEWS.details is not None
    assert IN_VIEWS.details("p", step, state) == []
    ruling = Ruling(
        decide="allow", rules=["b"], hash="ab" * 32, reason="allowed by the judge under rule 'b': a build\x1b"
    )
    state.result = Result(ok=True, timestamp=NOW, parts={"policy": ruling})
    [row] = IN_VIEWS.details("p", step, state)
    assert row.startswith("Policy: allowed by the judge under rule 'b': a build")
    assert row.endswith("(policy abababababab)")
    assert "\x1b" not in row
