"""The line of plans with one label: who has a place, who is told, whose word counts; and which places a plan needs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from plansurvive.client.listing import Listed
from plansurvive.features.quotas.doctor import findings
from plansurvive.features.quotas.filters import kept
from plansurvive.features.quotas.model import Covered, QuotaGranted, QuotaPlaces, QuotaRelease, QuotaRequest, Quotas
from plansurvive.features.quotas.quota_book import MOST, QuotaBook
from plansurvive.features.quotas.quotas_file import read_quotas
from plansurvive.features.quotas.rules import (
    RULES,
    ask,
    granted,
    is_held_up_otherwise,
    needed,
    next_place,
    waited_for,
)
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.notice import Notice
from plansurvive.plans.run import Options, PlanStatus, Run, run_of, text_of
from plansurvive.plans.run.feature import RuleSet
from plansurvive.runtime.settings import SettingError, Settings

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)
STEP = Step(id="below", tool="plan")


def request(name: str, most: int = 2) -> QuotaRequest:
    return QuotaRequest(
        key="quota-x", label="team=a", most=most, workflow_id=f"plan-{name}", run_id="1", token=f"token of {name}"
    )


def release(name: str, token: str = "") -> QuotaRelease:
    return QuotaRelease(workflow_id=f"plan-{name}", token=token or f"token of {name}")


def line_of(*names: str, most: int = 2) -> QuotaBook:
    book = QuotaBook()
    for name in names:
        assert book.ask(request(name, most))
    return book


def told(book: QuotaBook) -> list[str]:
    found = book.grant()
    for each in found:
        each.told = True
    return [each.request.workflow_id.removeprefix("plan-") for each in found]


def run_with(labels: dict[str, str], quotas: dict[str, int], **options: object) -> Run:
    plan = Plan(id="p", steps=[Step(id="a", tool="work")], labels=labels)
    facts = Facts(parts={"quotas": Quotas(labels=quotas)} if quotas else {})
    return Run.of(plan, Options.model_validate(options), facts, {})


def test_the_first_of_the_line_have_the_places_and_each_is_told_once() -> None:
    book = line_of("a", "b", "c")
    assert told(book) == ["a", "b"]
    assert told(book) == []
    assert (book.row.running, book.row.waiting) == (["plan-a", "plan-b"], ["plan-c"])
    assert book.release(release("a"))
    assert told(book) == ["c"]


def test_a_plan_that_asks_again_keeps_its_turn_and_is_told_again() -> None:
    book = line_of("a", "b", most=1)
    assert told(book) == ["a"]
    assert not book.ask(request("a", 1))
    assert told(book) == ["a"]
    assert not book.ask(request("b", 1))
    assert told(book) == []


def test_only_who_knows_the_token_releases() -> None:
    book = line_of("a", "b", most=1)
    told(book)
    assert not book.release(release("a", token="a guess"))
    assert not book.release(QuotaRelease(workflow_id="plan-b", token="token of a"))
    assert told(book) == []


def test_a_quota_that_was_lowered_takes_no_place_away_and_a_raised_one_gives_more() -> None:
    book = line_of("a", "b", "c")
    told(book)
    assert book.ask(request("d", 1))
    book.drop(["token of a"])
    assert told(book) == [], "one still runs, and one is all there may be"
    assert book.ask(request("e", 3))
    assert told(book) == ["c", "d"]


@pytest.mark.slow
def test_the_line_has_an_end_and_survives_continue_as_new() -> None:
    book = line_of(*(str(number) for number in range(MOST)))
    assert not book.ask(request("late"))
    told(book)
    again = QuotaBook.model_validate(book.model_dump(mode="json"))
    assert again == book


@pytest.mark.parametrize(
    ("labels", "quotas", "found"),
    [
        ({"team": "a"}, {}, {}),
        ({}, {"team": 1}, {}),
        ({"team": "a"}, {"team": 3}, {"team=a": 3}),
        ({"team": "a"}, {"team": 3, "team=a": 5}, {"team=a": 5}),
        ({"team": "b"}, {"team=a": 5}, {}),
        ({"team": "b", "customer": "x", "other": "y"}, {"team": 1, "customer": 2}, {"customer=x": 2, "team=b": 1}),
    ],
)
def test_a_plan_needs_a_place_of_each_of_its_labels_with_a_quota(
    labels: dict[str, str], quotas: dict[str, int], found: dict[str, int]
) -> None:
    assert list(needed(run_with(labels, quotas)).items()) == list(found.items())


def test_places_are_asked_for_one_after_the_other_and_continue_as_new_keeps_them() -> None:
    run = run_with({"team": "b", "customer": "x"}, {"team": 1, "customer": 2})
    assert next_place(run) == ("customer=x", 2)
    ask(run, "customer=x", 2, "t1", NOON)
    assert (next_place(run), run.is_held_up) == (None, True)
    assert run.notices["quotas"].text.endswith("with the label customer=x, at most 2 plans at a time")
    assert not granted(run, QuotaGranted(token="another"), NOON)
    assert granted(run, QuotaGranted(token="t1"), NOON)
    assert not granted(run, QuotaGranted(token="t1"), NOON), "it knows"
    run = run_of(text_of(run))
    assert next_place(run) == ("team=b", 1)
    ask(run, "team=b", 1, "t2", NOON)
    assert (place := waited_for(run)) is not None
    assert place.label == "team=b"
    assert granted(run, QuotaGranted(token="t2"), NOON)
    assert (next_place(run), waited_for(run), run.is_held_up) == (None, None, False)
    assert [each.label for each in run.part(QuotaPlaces).asked] == ["customer=x", "team=b"]


def test_places_are_asked_for_last_so_that_no_two_plans_wait_for_each_other() -> None:
    run = run_with({"team": "a"}, {"team": 1})
    assert not is_held_up_otherwise(run)
    run.notices["locks"] = Notice(text="waits for its workspace", since=NOON, holds=True)
    assert is_held_up_otherwise(run)


def test_a_child_plan_runs_in_the_places_of_its_parent() -> None:
    parts = RuleSet([RULES]).parts_for_child(run_with({"team": "a"}, {"team": 1}), STEP, None)
    child = run_with({"team": "a"}, {"team": 1}, parts=parts)
    assert child.options.part(Covered).is_covered
    assert needed(child) == {}
    assert RuleSet([RULES]).parts_for_child(child, STEP, None) == parts
    assert RuleSet([RULES]).parts_for_child(run_with({"team": "a"}, {}), STEP, None) == {}


def listed(**labels: str) -> Listed:
    return Listed(
        plan_id="p", task_id="p", workflow_id="plan-p", title="", status=PlanStatus.RUNNING, created_at=NOON,
        started_at=NOON, is_open=True, queue="q", labels=labels,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "fits"),
    [(["team"], True), (["team=a"], True), (["team=b"], False), (["team", "x=y"], True), (["team", "z"], False)],
)
def test_a_list_is_filtered_by_all_labels_that_are_given(given: list[str], fits: bool) -> None:
    assert kept({"label": given})(listed(team="a", x="y")) is fits


@pytest.mark.parametrize("text", ["", "=a", "team="])
def test_a_label_without_a_name_or_a_value_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="write --label"):
        kept({"label": [text]})


WRONG = ["[labels]\nteam = 0", '[labels]\nteam = "3"', '[labels]\n"a b" = 1', "[lables]\nteam = 1", "team = 1", "["]


@pytest.mark.parametrize("text", WRONG)
def test_a_file_that_cannot_be_used_is_an_error_and_a_row_of_doctor(tmp_path: Path, text: str) -> None:
    settings = Settings.read({"PLANS_STATE_DIR": str(tmp_path)})
    assert (read_quotas(settings), findings(settings, {})) == ({}, [])
    (tmp_path / "quotas.toml").write_text(text)
    with pytest.raises(SettingError, match=r"quotas\.toml"):
        read_quotas(settings)
    [row] = findings(settings, {})
    assert row.verdict == "bad"
    (tmp_path / "quotas.toml").write_text('[labels]\nteam = 3\n"team=a b" = 1\n')
    [row] = findings(settings, {})
    assert (row.verdict, row.text) == ("good", "quotas.toml: 2 labels with a quota of plans")
