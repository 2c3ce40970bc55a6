"""The line of plans that want one workspace: who gets the lock, who is told what, and whose word counts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from plansurvive.features.children.child_run import options_of
from plansurvive.features.locks.lock_book import MOST, LockBook
from plansurvive.features.locks.model import Lock, LockNews, LockRelease, LockRequest, LocksAll
from plansurvive.features.locks.rules import RULES, asked, key_of, needs_lock, told
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Options, Run
from plansurvive.plans.run.feature import RuleSet

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
STEP = Step(id="a", tool="work")


def request(name: str, run_id: str = "1") -> LockRequest:
    return LockRequest(key="workspace-x", workflow_id=f"plan-{name}", run_id=run_id, token=f"token of {name} {run_id}")


def release(name: str, token: str = "") -> LockRelease:
    return LockRelease(workflow_id=f"plan-{name}", token=token or f"token of {name} 1")


def tell_all(book: LockBook) -> list[tuple[str, bool, str, int]]:
    found = book.untold()
    for each in found:
        book.tell(each)
    return [(each.workflow_id, each.news.held, each.news.holder, each.news.ahead) for each in found]


def line_of(*names: str) -> LockBook:
    book = LockBook()
    for name in names:
        assert book.ask(request(name))
    return book


def test_the_first_one_holds_it_and_the_others_learn_who_does() -> None:
    book = line_of("a", "b", "c")
    assert tell_all(book) == [
        ("plan-a", True, "", 0), ("plan-b", False, "plan-a", 1), ("plan-c", False, "plan-a", 2),
    ]  # fmt: skip
    assert tell_all(book) == []


def test_it_is_handed_on_in_the_order_of_asking() -> None:
    book = line_of("a", "b", "c")
    tell_all(book)
    assert book.release(release("a"))
    assert tell_all(book) == [("plan-b", True, "", 0), ("plan-c", False, "plan-b", 1)]
    book.drop(request("b"))  # it was terminated
    assert tell_all(book) == [("plan-c", True, "", 0)]


def test_one_that_waits_may_leave_and_asking_again_keeps_its_place() -> None:
    book = line_of("a", "b", "c")
    tell_all(book)
    assert not book.ask(request("b"))
    assert tell_all(book) == [("plan-b", False, "plan-a", 1)]  # it had perhaps not heard
    assert book.release(release("b"))
    assert [each.asked.workflow_id for each in book.line] == ["plan-a", "plan-c"]


def test_a_release_without_the_token_counts_for_nothing() -> None:
    book = line_of("a", "b")
    assert not book.release(release("a", "guessed"))
    assert book.holder == request("a")


def test_a_new_plan_with_an_old_id_is_another_one() -> None:
    book = line_of("a")
    assert book.ask(request("a", "2"))
    book.drop(request("a"))
    assert book.holder == request("a", "2")


@pytest.mark.slow
@pytest.mark.sampled
def test_the_line_is_bounded() -> None:
    book = line_of(*(str(number) for number in range(MOST)))
    assert not book.ask(request("late"))


def run_of(**plan: object) -> Run:
    return Run.of(Plan.model_validate({"id": "p", "steps": [STEP], **plan}), Options(), Facts(workspace="/w"), {})


def test_a_plan_takes_what_only_the_keeper_of_its_lock_can_say() -> None:
    run = run_of(workspaceLock=True)
    assert needs_lock(run)
    asked(run, "token", NOON)
    assert run.is_held_up
    assert not told(run, LockNews(token="other", held=True), NOON)
    assert told(run, LockNews(token="token", held=False, holder="plan-b", ahead=1), NOON)
    state = run.part(Lock).state
    assert state is not None
    assert (state.holder, state.key) == ("plan-b", key_of("/w"))
    assert run.notices["locks"].text == "waits for its workspace, held by b"
    assert told(run, LockNews(token="token", held=False, holder="plan-b", ahead=3), NOON)
    assert run.notices["locks"].text == "waits for its workspace, held by b, with 2 more ahead"
    assert told(run, LockNews(token="token", held=True), NOON)
    assert run.notices["locks"].text == "has its workspace to itself"
    assert not told(run, LockNews(token="token", held=False), NOON)  # it came late


@pytest.mark.parametrize(
    ("own", "of_worker", "needs"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_the_plan_or_its_worker_asks_for_it(own: bool, of_worker: bool, needs: bool) -> None:
    run = run_of(workspaceLock=own)
    run.facts = run.facts.model_copy(update={"parts": {"locks": LocksAll(every_plan=of_worker)}})
    assert needs_lock(run) is needs


def started_by(parent: Run, child: Run) -> Options:
    parts = RuleSet([RULES]).parts_for_child(parent, STEP, child.plan)
    return options_of(parent, STEP, child.plan).model_copy(update={"parts": parts})


def test_plans_below_share_the_lock_of_the_plan_above_and_ask_for_none() -> None:
    parent = run_of(workspaceLock=True)
    child = run_of(workspaceLock=True)
    child.options = started_by(parent, child)
    assert not needs_lock(child)
    grandchild = run_of(workspaceLock=True)
    grandchild.options = started_by(child, grandchild)
    assert not needs_lock(grandchild)
    child.options = started_by(run_of(), child)  # the control: the parent has none
    assert needs_lock(child)
