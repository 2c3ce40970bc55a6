"""Names of plans: what may name one, and what is made up."""

from __future__ import annotations

import re

import pytest

from plansurvive.client.errors import BadPlanId, PlanExists
from plansurvive.client.ids import checked, generated, plan_id, with_generated, workflow_id


def test_a_plan_is_named_by_its_plan_id_or_its_workflow_id() -> None:
    assert workflow_id("a") == workflow_id("plan-a") == "plan-a"
    assert plan_id("plan-a") == plan_id("a") == "a"


def test_the_longest_id_names_its_plan_with_and_without_the_prefix() -> None:
    longest = "x" * 200
    assert checked(longest) == longest
    assert workflow_id(longest) == workflow_id(f"plan-{longest}") == f"plan-{longest}"


@pytest.mark.parametrize("text", ["", "a b", "a\n", "x" * 201, "plan-" + "x" * 201, "../a", "ä", "-a"])
def test_a_text_that_can_name_no_plan_is_refused(text: str) -> None:
    with pytest.raises(BadPlanId):
        workflow_id(text)
    with pytest.raises(BadPlanId):
        checked(text)


def test_a_new_id_cannot_look_like_a_workflow_id() -> None:
    with pytest.raises(BadPlanId):
        checked("plan-a")


def test_a_run_of_a_schedule_is_named_by_its_time_and_no_other_plan_is() -> None:
    assert workflow_id("nightly-2027-03-28T05:00:00Z") == "plan-nightly-2027-03-28T05:00:00Z"
    assert plan_id("plan-nightly-2027-03-28T05:00:00Z-r2") == "nightly-2027-03-28T05:00:00Z-r2"
    with pytest.raises(BadPlanId, match="colon"):
        checked("nightly-2027-03-28T05:00:00Z")


@pytest.mark.parametrize(
    ("title", "begins"),
    [
        ("Clean up: the data!", "clean-up-the-data-"),
        ("Ärger", "arger-"),
        ("計画", "untitled-"),
        ("", "untitled-"),
        ("Plan", "untitled-"),
        ("Plan plan the week", "the-week-"),
        ("x" * 99, "x" * 40 + "-"),
    ],
)
def test_an_invented_id_begins_with_the_title_and_can_be_used(title: str, begins: str) -> None:
    made = generated(title)
    assert made.startswith(begins)
    assert re.fullmatch(r".*-[a-z2-7]{6}", made)
    assert made != generated(title)
    assert plan_id(workflow_id(made)) == made == checked(made)


async def test_a_generated_id_that_was_used_before_is_replaced_and_a_chosen_one_is_not() -> None:
    used, begun = {"report-aaaaaa", "report-bbbbbb"}, []
    made = iter(["report-aaaaaa", "report-bbbbbb", "report-cccccc"])

    async def begin(chosen: str) -> str:
        if chosen in used:
            raise PlanExists(chosen)
        begun.append(chosen)
        return chosen

    assert await with_generated("Report", begin, lambda _: next(made)) == "report-cccccc"
    assert begun == ["report-cccccc"]
    with pytest.raises(PlanExists):
        await with_generated("Report", begin, lambda _: "report-aaaaaa")
