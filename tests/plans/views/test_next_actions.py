"""What may be done next, for every way a plan can stand or end."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.execution import approvals
from plansurvive.plans.in_views import InViews, ViewSet
from plansurvive.plans.proposals import Proposal
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.views.next_actions import next_actions
from plansurvive.plans.views.summary import AskedStep, Denial, Failure, Outdated, Summary, UndoneStep, summary_of
from tests.plans.building import NOW, begun, failed, later, step

FAILED = [Failure(step_id="build", code="TOOL_FAILED", error="exit code 1")]
LOST = [Failure(step_id="build", code="OUTCOME_UNKNOWN", error="the worker died")]
INSIDE = [Failure(step_id="resize[cat.png].thumb", code="TOOL_FAILED"), Failure(step_id="resize")]
BUDGET = [Failure(step_id="draft", code="LLM_BUDGET")]
DENIED = [Denial(step_id="deploy", by="ann")]


def asks(kind: str, step_id: str = "deploy", plan: str = "p", event: str = "", digest: str = "") -> AskedStep:
    return AskedStep(plan_id=plan, step_id=step_id, kind=kind, event=event, digest=digest)


LOGS, RESUME = "plan logs p build", "plan resume p"
TABLE: dict[str, tuple[dict[str, Any], list[str]]] = {
    "it is being written": ({"status": "draft"}, ["plan watch p"]),
    "no worker": ({"status": "running", "unserved": "plans"}, ["plan up"]),
    "no worker, paused": (
        {"status": "paused", "unserved": "a queue"},
        ["plan worker --queue 'a queue'", "plan unpause p"],
    ),
    "a draft with problems": (
        {"status": "review", "problems": 2},
        ["plan review p", 'plan regenerate p "FEEDBACK"'],
    ),
    "refused by its workers": ({"status": "failed", "problems": 1}, ["plan resume p"]),
    "a file has changed that a kept step read": (
        {"status": "partial", "failed": FAILED, "outdated": [Outdated(step_id="each[b].read", path="b.txt")]},
        ["plan rerun p --from 'each[b].read'", LOGS, RESUME, "plan rerun p --from build"],
    ),
    "it completed with what a kept step read before": (
        {"status": "completed", "outdated": [Outdated(step_id="read", path="b.txt")]},
        ["plan rerun p --from read"],
    ),
    "in review": ({"status": "review"}, ["plan review p", "plan begin p"]),
    "nothing is asked": ({"status": "running"}, []),
    "paused": ({"status": "paused"}, ["plan unpause p"]),
    "paused while it asks": (
        {"status": "paused", "asks": [asks("approval")]},
        ["plan unpause p", "plan pending p", "plan approve p deploy"],
    ),
    "an approval": ({"status": "running", "asks": [asks("approval")]}, ["plan pending p", "plan approve p deploy"]),
    "an approval of a call that was edited": (
        {"status": "running", "asks": [asks("approval", digest="ab12")]},
        ["plan pending p", "plan approve p deploy --digest ab12"],
    ),
    "approvals of items": (
        {"status": "running", "asks": [asks("approval", "resize[a]"), asks("approval", "resize[b]")]},
        ["plan pending p", "plan approve p 'resize[a]'", "plan approve p 'resize[*]'"],
    ),
    "an approval of one item": (
        {"status": "running", "asks": [asks("approval", "resize[a]")]},
        ["plan pending p", "plan approve p 'resize[a]'"],
    ),
    "questions of items, each with its own answer": (
        {"status": "running", "asks": [asks("answer", "name[a]"), asks("answer", "name[b]")]},
        ["plan pending p", "plan answer p 'name[a]' VALUE"],
    ),
    "a question": ({"status": "running", "asks": [asks("answer")]}, ["plan pending p", "plan answer p deploy VALUE"]),
    "a recovery": ({"status": "running", "asks": [asks("recovery")]}, ["plan pending p", "plan approve p deploy"]),
    "a budget": ({"status": "running", "asks": [asks("budget")]}, ["plan pending p", "plan approve p deploy"]),
    "an agent's call": (
        {"status": "running", "asks": [asks("approval", "call_3", "agent-p-x")]},
        ["plan pending p", "plan approve agent-p-x call_3"],
    ),
    "a child plan's step": (
        {"status": "running", "asks": [asks("approval", "deploy/upload")]},
        ["plan pending p", "plan approve p deploy/upload"],
    ),
    "an event": ({"status": "running", "asks": [asks("event", event="paid")]}, ["plan event p paid"]),
    "an event named by a value": (
        {"status": "running", "asks": [asks("event", event="{{order}}")]},
        ["plan event p NAME"],
    ),
    "many at once": (
        {"status": "running", "asks": [asks("approval", f"s{number}") for number in range(9)]},
        ["plan pending p", "plan approve p s0", "plan approve p s1", "plan approve p s2"],
    ),
    "of a worker of before": (
        {"status": "running", "awaiting": ["deploy"]},
        ["plan pending p", "plan approve p deploy"],
    ),
    "completed": ({"status": "completed"}, []),
    "a step failed": ({"status": "partial", "failed": FAILED}, [LOGS, RESUME, "plan rerun p --from build"]),
    "a critical step failed": (
        {"status": "failed", "failed": FAILED, "stopped": "critical step 'build' failed"},
        [LOGS, RESUME, "plan rerun p --from build"],
    ),
    "a call was lost, and the plan has ended": (
        {"status": "partial", "failed": LOST},
        [LOGS, RESUME, "plan rerun p --from build"],
    ),
    "a call was lost, and the plan runs": ({"status": "running", "failed": LOST}, ["plan interrupt p"]),
    "an item failed": (
        {"status": "partial", "failed": INSIDE},
        ["plan logs p 'resize[cat.png].thumb'", RESUME, "plan rerun p --from 'resize[cat.png]'"],
    ),
    "two items failed": (
        {"status": "partial", "failed": [Failure(step_id=each) for each in ("a[x].c", "a[x]", "a[y].c", "a[y]", "a")]},
        ["plan logs p 'a[x].c'", RESUME, "plan rerun p --from 'a[x]' --from 'a[y]'"],
    ),
    "many items failed": (
        {"status": "partial", "failed": [Failure(step_id=each) for each in ("a[1]", "a[2]", "a[3]", "a[4]", "a")]},
        ["plan logs p 'a[1]'", RESUME, "plan rerun p --from a"],
    ),
    "a step failed in an item of an item": (
        {
            "status": "partial",
            "failed": [Failure(step_id=each) for each in ("a[x].b[y].c", "a[x].b[y]", "a[x].b", "a")],
        },
        ["plan logs p 'a[x].b[y].c'", RESUME, "plan rerun p --from 'a[x]'"],
    ),
    "an item failed in a block": (
        {"status": "partial", "failed": [Failure(step_id=each) for each in ("a.b[y].c", "a.b[y]", "a.b", "a")]},
        ["plan logs p 'a.b[y].c'", RESUME, "plan rerun p --from a"],
    ),
    "a step failed in a round": (
        {"status": "partial", "failed": [Failure(step_id=each) for each in ("a#3.b", "a#3", "a")]},
        ["plan logs p 'a#3.b'", RESUME, "plan rerun p --from a"],
    ),
    "an item failed that its loop tolerates": (
        {"status": "completed", "failed": INSIDE[:1]},
        ["plan rerun p --from 'resize[cat.png].thumb'"],
    ),
    "an item failed that its loop tolerates, and then a step": (
        {"status": "partial", "failed": [*INSIDE[:1], *FAILED]},
        ["plan logs p 'resize[cat.png].thumb'", "plan rerun p --from 'resize[cat.png].thumb'", RESUME],
    ),
    "items of two loops failed that those tolerate": (
        {"status": "completed", "failed": [Failure(step_id=each) for each in ("a[1]", "a[2]", "b[x].y")]},
        ["plan rerun p --from 'a[1]' --from 'b[x].y'"],
    ),
    "more items failed than a summary has": (
        {"status": "partial", "failed": [Failure(step_id=f"a[{number}]") for number in range(100)]},
        ["plan logs p 'a[0]'", RESUME, "plan rerun p --from a"],
    ),
    "a step was denied": ({"status": "partial", "denied": DENIED}, [RESUME]),
    "the budget is spent": (
        {"status": "partial", "failed": BUDGET},
        ["plan logs p draft", "plan resume p --set budget.calls=N", RESUME, "plan rerun p --from draft"],
    ),
    "cancelled": ({"status": "cancelled", "stopped": "the plan was cancelled"}, [RESUME]),
    "interrupted": ({"status": "cancelled", "stopped": "interrupted by ann"}, [RESUME]),
    "failed before it began": ({"status": "failed", "stopped": "no worker could check it"}, [RESUME]),
    "resumed since": ({"status": "partial", "failed": FAILED, "resumed_by": "p-r2"}, ["plan show p-r2"]),
    "an agent ended": ({"plan_id": "agent-x", "status": "partial", "failed": FAILED}, ["plan resume agent-x"]),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_next_command_is_told_for_every_outcome(name: str) -> None:
    fields, commands = TABLE[name]
    more = {key: fields[key] for key in ("resumed_by", "unserved") if key in fields}
    shown = {"plan_id": "p", **{key: value for key, value in fields.items() if key not in more}}
    found = next_actions(Summary(**shown), **more)
    assert [each.command for each in found] == commands
    assert all(each.sentence and each.sentence[0].islower() for each in found)


def test_of_a_lost_call_the_next_command_says_to_look_first() -> None:
    ended = next_actions(Summary(plan_id="p", status=PlanStatus.PARTIAL, failed=LOST))
    assert ["check first what 'build' did" in each.sentence for each in ended] == [False, True, True]
    (running,) = next_actions(Summary(plan_id="p", status=PlanStatus.RUNNING, failed=LOST))
    assert "`plan rerun p --from build` calls it again" in running.sentence


def test_no_status_is_forgotten() -> None:
    statuses = {str(fields["status"]) for fields, _ in TABLE.values()}
    assert statuses == {status.value for status in PlanStatus}


def test_a_denial_says_that_it_will_be_asked_again() -> None:
    (found,) = next_actions(Summary(plan_id="p", status=PlanStatus.PARTIAL, denied=DENIED))
    assert "asks again about what was denied" in found.sentence


def test_a_resume_is_said_to_keep_the_items_that_failed_within_tolerate() -> None:
    steps = [Failure(step_id=each) for each in ("a[1]", "a[2]", "build")]
    _, rerun, resume = next_actions(Summary(plan_id="p", status=PlanStatus.PARTIAL, failed=steps))
    assert rerun.sentence == "runs all failed items of 'a' and what depends on them again"
    assert resume.sentence == "runs what is not done; keeps the rest, and the failed items of 'a'"


def test_what_was_undone_is_run_again() -> None:
    undone = [UndoneStep(step_id="upload", status="completed")]
    summary = Summary(plan_id="p", status=PlanStatus.PARTIAL, failed=FAILED, undone=undone)
    resume, rerun = next_actions(summary)[1:]
    assert resume.sentence == "runs what is not done, or was undone; keeps the rest"
    assert rerun.sentence == "runs 'build' and what depends on it again, and what was undone"


def test_an_approval_of_an_edited_call_says_which_it_is_about() -> None:
    schedule = begun(step("a"), step("b"))
    for name in ("a", "b"):
        schedule.ask(name, later(1))
        approvals.ask(schedule.run, name, {}, name * 64)
    schedule.run.edited["b"] = approvals.CALL
    commands = [each.command for each in next_actions(summary_of(schedule.run))]
    assert commands == ["plan pending p", "plan approve p a", f"plan approve p b --digest {'b' * 64}"]


def test_what_is_proposed_is_said_in_the_words_of_its_feature() -> None:
    repair = Proposal("it broke", "Mend it?", "approval of a repair", "repairs", "a repair of", lambda *_: [])
    views = ViewSet([InViews("repairing", proposals={"repair": repair})])
    asked = Summary(plan_id="p", status=PlanStatus.RUNNING, asks=[asks("repair")])
    assert next_actions(asked, views=views)[1].sentence == "repairs deploy; `plan deny` with --comment WHY denies"
    assert next_actions(asked)[1].sentence == "approves deploy; `plan deny` with --comment WHY denies"


def test_what_a_step_is_called_cannot_become_a_command() -> None:
    hostile = [asks("approval", "x; rm -rf ~\u202e"), asks("event", event="$(reboot)")]
    commands = [each.command for each in next_actions(Summary(plan_id="p", status=PlanStatus.RUNNING, asks=hostile))]
    assert commands[1].startswith("plan approve p 'x; rm -rf ~")
    assert "\u202e" not in commands[1]
    assert commands[2] == "plan event p NAME"


def test_a_runs_own_summary_leads_to_its_next_commands() -> None:
    schedule = begun(step("a"), step("b"))
    schedule.ask("b", later(1))
    schedule.start("a", NOW)
    schedule.settle("a", failed(), later(2))
    commands = [each.command for each in next_actions(summary_of(schedule.run))]
    assert commands == ["plan pending p", "plan approve p b"]
    schedule.end(later(3), cancelled=True)
    commands = [each.command for each in next_actions(summary_of(schedule.run))]
    assert commands[:2] == ["plan logs p a", "plan resume p"]
