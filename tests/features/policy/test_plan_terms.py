"""What a plan says itself of who must approve: it is asked for, together with what the policy says, or refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.activities.feature import WorkerFeatures
from plansurvive.activities.lifecycle.check_plan import PlanChecker
from plansurvive.features.policy.check import problems as on_this_machine
from plansurvive.features.policy.check import too_few
from plansurvive.features.policy.commands import _doubts
from plansurvive.features.policy.in_views import IN_VIEWS
from plansurvive.features.policy.model import NO_CALLS, Decided, JudgedCall, Term
from plansurvive.features.policy.plan_terms import problems
from plansurvive.features.policy.policy_file import read
from plansurvive.features.policy.rules import RULES
from plansurvive.features.policy.tool_specs import described
from plansurvive.plans.activity_io import Call, CheckRequest
from plansurvive.plans.model import Plan, Retry
from plansurvive.runtime.settings import Settings
from tests.activities.attempts import Attempts
from tests.activities.conftest import attempts
from tests.features.policy.test_layer import WRITE, judging
from tests.features.policy.test_rules import SPEC, run

__all__ = ["attempts"]

BOTH = {"by": ["ann", "group:ops"], "count": 2, "notAuthor": True, "expires": "4h"}


def sent(defaults: dict[str, Any] | None = None, **step: Any) -> JudgedCall:
    found = run(**step)
    found.plan = found.plan.model_copy(update={"defaults": Plan.model_validate(
        {"steps": [{"id": "x", "tool": "t"}], "defaults": defaults or {}}
    ).defaults})  # fmt: skip
    assert RULES.extend is not None
    call = Call(plan_id="p", step_id="s", key="k", args={}, workspace="/", timeout=1.0, retry=Retry())
    part = RULES.extend(found, found.plan.steps[0], call)
    assert isinstance(part, JudgedCall)
    return part


def test_a_call_brings_what_its_plan_wants() -> None:
    own = Term(rule="", by=["ann", "group:ops"], count=2, not_author=True, expires=14_400)
    found = sent(approval=BOTH)
    assert (found.wants, found.must) == ([own], True)
    found = sent({"approval": {"by": "bob"}}, approval={"timeout": 60})
    assert (found.wants, found.must) == ([Term(rule="", by=["bob"])], False), "a time limit of its own changes nothing"
    found = sent({"approval": {"by": "bob"}}, approval=BOTH)
    assert found.wants == [own, Term(rule="", by=["bob"])], "the defaults hold as well"
    assert sent().wants == []


@pytest.mark.parametrize("judged", [True, False])
def test_it_is_refused_where_nobody_could_tell_who_approves(judged: bool) -> None:
    plan = Plan.model_validate({"steps": [
        {"id": "a", "tool": "t", "approval": {"by": "ann"}},
        {"id": "b", "steps": [{"id": "c", "tool": "t"}], "approval": {"count": 2}},
        {"id": "d", "tool": "t", "approval": {"timeout": 60}},
    ]})  # fmt: skip
    tools = {"t": SPEC.model_copy(update={"judged": judged})}
    found = list(problems(plan, tools, knows_people=True))
    assert [each.step_id for each in found] == (["b"] if judged else ["b", "a"])
    [only] = problems(plan, tools, knows_people=False)
    assert (only.code, only.step_id, "policy.toml" in only.message) == ("BAD_APPROVAL", "a", True)


def test_people_who_are_named_while_the_worker_runs_count_from_the_next_plan(tmp_path: Path) -> None:
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path)})
    features = WorkerFeatures(specs=[described(settings)])
    spec = features.described(SPEC.model_copy(update={"judged": False}))
    checker = PlanChecker({"t": spec}, str(tmp_path), features=features)
    plan = Plan.model_validate({"steps": [{"id": "a", "tool": "t", "approval": {"by": "ann"}}]})

    def found() -> list[str | None]:
        facts = checker.check_plan(CheckRequest(plan=plan))
        return [each.step_id for each in problems(plan, facts.tools, knows_people=True)]

    assert found() == ["a"]
    (tmp_path / "policy.toml").write_text(PEOPLE)
    assert found() == []


SAYS = {"by": ["ann"]}


@pytest.mark.parametrize("tool", [*NO_CALLS, "coding_agent", ""])
def test_a_step_that_asks_no_certain_people_is_refused_in_plan_check_with_the_way_out(
    tool: str, tmp_path: Path
) -> None:
    """By the step itself. Defaults of the plan hold for what asks, and a rule that names such a tool is a mistake."""
    step: dict[str, Any] = {"id": "a", "tool": tool, "approval": SAYS}
    plan = Plan.model_validate(
        {"steps": [step if tool else {"id": "a", "steps": [{"id": "b", "tool": "t"}], "approval": SAYS}]}
    )
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path)})
    [found] = on_this_machine(plan, settings)
    assert (found.code, found.step_id, found.field, found.severity) == ("BAD_APPROVAL", "a", "approval", "error")
    assert "say who must approve" in found.message or "policy.toml who must approve" in found.message
    assert [each.message for each in problems(plan, {}, knows_people=True)] == [found.message]
    defaults = Plan.model_validate({"steps": [{"id": "a", "tool": tool or "t"}], "defaults": {"approval": SAYS}})
    assert on_this_machine(defaults, settings) == []


@pytest.mark.parametrize("tool", NO_CALLS)
def test_a_rule_that_names_a_tool_whose_steps_make_no_call_is_a_mistake_in_its_line(tool: str) -> None:
    text = f'[[rule]]\nname = "r"\ndecide = "ask"\ntool = ["t", "{tool}"]\n'
    [mistake] = read(text, datetime.now(UTC)).mistakes
    assert (mistake.line, "makes no call" in mistake.text, f"remove '{tool}'" in mistake.text) == (4, True, True)


def test_a_rule_that_fits_only_such_tools_is_a_warning_and_one_about_a_coding_agent_is_none() -> None:
    tools = {name: SPEC.model_copy(update={"name": name}) for name in (*NO_CALLS, "coding_agent", "t")}

    def warned(tool: str) -> list[str]:
        policy = read(f'[[rule]]\nname = "r"\ndecide = "ask"\ntool = "{tool}"\n', datetime.now(UTC)).policy
        assert policy is not None
        return [each.text for each in _doubts(policy, tools)]

    assert warned("wait_*") == ["it fits wait_for alone, whose steps make no call: it is never asked; remove it"]
    assert [warned(each) for each in ("coding_agent", "coding_agent.edit", "coding_agent.*", "*")] == [[], [], [], []]
    assert "no tool here" in warned("coding_agent.edti")[0]


def test_names_that_the_policy_here_does_not_have_are_a_warning(tmp_path: Path) -> None:
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path)})
    plan = Plan.model_validate({"steps": [{"id": "a", "tool": "t", "approval": {"by": ["ann", "eve", "group:x"]}}]})
    assert on_this_machine(plan, settings) == []
    (tmp_path / "policy.toml").write_text('[people]\nann = {logins = ["ann@example.org"]}\n')
    found = on_this_machine(plan, settings)
    assert [(each.step_id, each.field, each.severity) for each in found] == [("a", "approval.by", "warning")] * 2
    assert ["'eve'" in found[0].message, "'group:x'" in found[1].message] == [True, True]


GROUPS = '[people]\nann = {logins = ["a@b.c"]}\nbob = {logins = ["b@b.c"]}\n[groups]\nops = ["bob"]\n'


@pytest.mark.parametrize(
    ("by", "count", "here", "at_worker"),
    [
        (["ann", "bob"], 3, True, False),
        (["ann", "ann"], 2, True, False),
        (["ann", "bob"], 2, False, False),
        (["ann", "group:ops"], 3, False, True),
        (["bob", "group:ops"], 2, False, True),
        (["ann", "group:ops"], 2, False, False),
        (["ann", "group:other"], 3, False, False),  # a warning says that there is no such group
        ([], 3, False, True),
        ([], 2, False, False),
    ],
)
def test_more_people_than_there_are_is_refused_where_they_are_known(
    by: list[str], count: int, here: bool, at_worker: bool, tmp_path: Path
) -> None:
    inner = {"id": "c", "tool": "t", "approval": {"by": by, "count": count}}
    of_steps = Plan.model_validate({"steps": [{"id": "b", "steps": [inner]}]})
    of_all = Plan.model_validate({"steps": [{"id": "c", "tool": "t"}], "defaults": {"approval": inner["approval"]}})
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path)})
    policy = read(GROUPS, datetime.now(UTC)).policy
    assert policy is not None
    for plan, place in ((of_steps, ("b.c", "approval.count")), (of_all, (None, "defaults.approval.count"))):
        mine = [each for each in on_this_machine(plan, settings) if each.severity == "error"]
        theirs = list(too_few(plan, policy.written))
        assert [(each.step_id, each.field) for each in mine] == [place] * here
        assert [(each.step_id, each.field) for each in theirs] == [place] * at_worker
        assert all("write a lower `count`" in each.message for each in [*mine, *theirs])


def test_a_rule_of_the_policy_that_wants_more_people_than_it_has_is_a_warning() -> None:
    def warned(count: int) -> list[str]:
        rule = f'[[rule]]\nname = "r"\ndecide = "ask"\ncount = {count}\n'
        return [str(each) for each in read(rule + GROUPS, datetime.now(UTC)).warnings]

    assert warned(2) == []
    assert ["line 4" in warned(3)[0], "[people] has 2" in warned(3)[0]] == [True, True]


PEOPLE = """
[people]
ann = {logins = ["ann@example.org"]}
bob = {logins = ["bob@example.org"]}
[pages]
team = "ed25519:MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
"""
TEAM = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1"


def by(*names: str) -> list[Decided]:
    page = {"signed": "page:team", "verified": True, "key": TEAM}
    return [Decided.model_validate({"by": f"{each}@example.org", "time": datetime.now(UTC), **page}) for each in names]


def wanting(call: Call, decided: list[Decided], *, must: bool = True, asks: bool = False) -> Call:
    part = JudgedCall(wants=[Term(rule="", by=["bob"])], must=must, asks=asks, decided=decided)
    return call.model_copy(update={"parts": {"policy": part}, "approved": True})


@pytest.mark.parametrize(
    ("rule", "names", "reason"),
    [
        ('decide = "allow"', (), "the plan itself says who must approve it"),
        ('decide = "allow"', ("ann",), "the plan itself lets bob decide, and ann is not among them"),
        ('decide = "allow"', ("bob",), ""),
        ('decide = "ask"\nby = ["ann"]', ("bob",), "rule 'r' of the policy asks"),
        ('decide = "ask"\nby = ["ann"]', ("ann",), "rule 'r' of the policy asks"),
        ('decide = "ask"\nby = ["ann"]', ("ann", "bob"), ""),
        ('decide = "ask"\nby = ["bob"]', ("bob",), ""),
    ],
)
async def test_the_plan_and_the_policy_must_both_be_met(
    attempts: Attempts, tmp_path: Path, rule: str, names: tuple[str, ...], reason: str
) -> None:
    site = judging(attempts, tmp_path, rule + PEOPLE)
    call = wanting(site.call(WRITE), by(*names))
    if not reason:
        assert await site.run("write_file", call)
        return
    with pytest.raises(ApplicationError) as caught:
        await site.run("write_file", call)
    assert (caught.value.type, reason in str(caught.value)) == ("APPROVAL_REQUIRED", True), str(caught.value)


@pytest.mark.parametrize("decided", [(), ("ann",), ("bob",)])
async def test_the_defaults_of_a_plan_say_who_approves_and_not_that_it_asks(
    attempts: Attempts, tmp_path: Path, decided: tuple[str, ...]
) -> None:
    site = judging(attempts, tmp_path, f'tool = "run_command"\ndecide = "allow"{PEOPLE}')
    call = wanting(site.call(WRITE), by(*decided), must=False)
    if decided == ("ann",):
        with pytest.raises(ApplicationError, match="ann is not among them"):
            await site.run("write_file", call)
    else:
        assert await site.run("write_file", call)


def test_views_say_whom_the_plan_wants_before_anybody_is_asked_by_the_worker() -> None:
    found = run(approval=BOTH)
    step = found.plan.steps[0]
    assert IN_VIEWS.card is not None
    assert IN_VIEWS.details is not None
    [shown] = IN_VIEWS.card(found, step)["consents"]
    assert (shown.by, shown.count, shown.missing) == (["ann", "group:ops"], 2, 2)
    assert shown.text == "the plan itself: 2 of ann, group:ops; none of them an author"
    assert IN_VIEWS.details("p", step, found.steps["s"]) == [f"Approval: {shown.text}"]
