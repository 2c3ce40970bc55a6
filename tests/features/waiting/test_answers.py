"""Which answers count: before, while and after a step asks, after edits, in a run that resumes."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.waiting import answers
from plansurvive.features.waiting.messages import AnswerQuestion
from plansurvive.plans.editing.apply_edits import revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import approvals, revision
from plansurvive.plans.execution.asking import digest_of_question, note_question, use_answer
from plansurvive.plans.execution.messages import Decide, read
from plansurvive.plans.execution.resume import rerun_from, resumed
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Step
from plansurvive.plans.run import Result, Status, StepState
from plansurvive.plans.step_state import Outcome
from plansurvive.plans.views.progress.pending import call_view
from plansurvive.plans.views.views import plan_view
from tests.features.waiting.asking import ask, asking
from tests.plans.building import NOW, completed, step

INSTANCE = "resize[cat.png].ask"


def asked(*steps: Any, **fields: Any) -> Schedule:
    """A run whose step `ask` asks."""
    schedule = asking(*steps, **fields)
    asks(schedule)
    return schedule


def asks(schedule: Schedule, name: str = "ask") -> None:
    args = schedule.step(name).args
    schedule.ask(name, NOW, None, "answer")
    state = schedule.run.steps[name]
    state.waits[state.changes[-1].seq] = "answer"
    note_question(schedule.run, name, args)


def answer(schedule: Schedule, value: Any, name: str = "ask", **more: Any) -> Any:
    message = AnswerQuestion(step_id=name, value=value, **more)
    return answers.take(schedule, message, NOW, "signal")


def code(schedule: Schedule, value: Any, name: str = "ask", **more: Any) -> str:
    """The code with which an answer is refused; nothing has changed then."""
    before = schedule.run.model_dump()
    with pytest.raises(Refused) as caught:
        answer(schedule, value, name, **more)
    assert schedule.run.model_dump() == before
    return caught.value.code


def test_the_first_answer_that_fits_counts() -> None:
    schedule = asked(ask(choices=["a", "b"]))
    assert code(schedule, "c") == "INVALID_ANSWER"
    assert answer(schedule, "a", by="ann").by == "ann"
    assert code(schedule, "b") == "ALREADY_DECIDED"
    assert schedule.run.log[-1].text == "step 'ask' answered by ann: \"a\""


def test_an_answer_to_what_asks_nothing_is_refused_with_the_way_to_decide() -> None:
    schedule = asked(ask(), step("gate", requires_approval=True), step("done"))
    schedule.start("done", NOW)
    schedule.settle("done", completed(), NOW)
    assert code(schedule, "x", "gate") == "NOT_A_QUESTION"
    assert code(schedule, "x", "nowhere") == "UNKNOWN_STEP"
    with pytest.raises(Refused, match="plan answer p ask VALUE") as caught:
        approvals.check(schedule.run, Decide(step_id="ask", approved=False))
    assert caught.value.code == "IS_A_QUESTION"


def test_a_question_that_is_not_asked_yet_is_shown_as_one() -> None:
    schedule = asking(step("first"), ask("ask", "first", choices=["a"]))
    assert (call_view(schedule.run, "ask")["kind"], call_view(schedule.run, "first")["kind"]) == ("question", "early")


def test_a_question_that_needs_approval_first_may_be_approved() -> None:
    gated = ask().model_copy(update={"requires_approval": True})
    schedule = asking(gated)
    assert approvals.check(schedule.run, Decide(step_id="ask", approved=True)).id == "ask"


def test_an_early_answer_is_checked_as_soon_as_the_question_is_known() -> None:
    schedule = asking(ask("list", schema={}), ask("ask", "list", choices="$list"))
    assert answer(schedule, "b").digest == ""
    answered = Outcome(Status.COMPLETED, Result(ok=True, value=["b", "c"], timestamp=NOW))
    schedule.settle("list", answered, NOW, waited=True)
    fits = {"question": "Which?", "choices": ["b", "c"]}
    assert answers.standing(schedule.run, "ask", fits, NOW) is not None
    assert answers.standing(schedule.run, "ask", {**fits, "choices": ["c"]}, NOW) is None
    assert "it asks again" in schedule.run.log[-1].text


def test_an_edit_discards_the_answer_and_the_next_one_must_say_to_which_question_it_belongs() -> None:
    schedule = asking(ask(choices=["a", "b"]))
    answer(schedule, "a")
    edit = {"op": "set", "stepId": "ask", "path": "args.choices", "value": ["b", "c"]}
    revised = revise(schedule.run, Edits.model_validate({"edits": [edit]}), NOW)
    revision.put_into_effect(schedule, revised, NOW)
    assert schedule.run.steps["ask"].answer is None
    assert code(schedule, "b") == "DIGEST_REQUIRED"
    old = digest_of_question({"question": "Which?", "choices": ["a", "b"]})
    assert code(schedule, "b", digest=old) == "STALE_DIGEST"
    new = digest_of_question({"question": "Which?", "choices": ["b", "c"]})
    assert answer(schedule, "b", digest=new).digest == new


def test_a_resumed_run_keeps_an_answer_that_no_step_has_used_and_asks_again_otherwise() -> None:
    schedule = asked(ask(), ask("early", "ask"), step("end", "early"))
    answer(schedule, "kept", "early")
    schedule.stop("interrupted", NOW)
    schedule.end(NOW, cancelled=True)
    new = resumed(schedule.run, "p-r2", NOW)
    assert [name for name, state in new.steps.items() if state.answer is not None] == ["early"]
    assert new.steps["ask"].awaiting is None


def test_a_rerun_asks_again() -> None:
    schedule = asked(ask(), step("end", "ask"))
    answer(schedule, "x")
    value = use_answer(schedule.run, "ask")
    schedule.settle("ask", Outcome(Status.COMPLETED, Result(ok=True, value=value, timestamp=NOW)), NOW, waited=True)
    schedule.stop("interrupted", NOW)
    schedule.end(NOW, cancelled=True)
    assert resumed(schedule.run, "p-r2", NOW).steps["ask"].result is not None
    assert rerun_from(schedule.run, "ask", "p-r2", NOW).steps["ask"].answer is None


def test_the_view_has_the_whole_question_and_who_answered() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schedule = asked(ask(schema=schema, default={"size": 1}, to="ann"))
    view = plan_view(schedule.run, schedule)
    item = view["pending"][0]
    assert (item["kind"], item["args"]) == ("question", schedule.step("ask").args)
    assert item["digest"] == digest_of_question(item["args"])
    answer(schedule, {"size": 2}, by="bob", digest=item["digest"])
    assert plan_view(schedule.run, schedule)["steps"][0]["answer"]["by"] == "bob"


class Mapped(Schedule):
    """A schedule with an instance of the step `ask`."""

    def step(self, step_id: str) -> Step:
        """The step, or its instance."""
        return super().step("ask").model_copy(update={"id": step_id})


def test_a_step_may_have_the_id_of_an_instance() -> None:
    schedule = Mapped(asking(ask(choices=["x"])).run)
    schedule.run.steps[INSTANCE] = StepState(status=Status.READY)
    assert code(schedule, "y", INSTANCE) == "INVALID_ANSWER"
    assert answer(schedule, "x", INSTANCE).value == "x"
    assert f"step '{INSTANCE}' answered" in schedule.run.log[-1].text


@pytest.mark.parametrize(
    "message",
    [None, {}, {"stepId": "ask"}, {"stepId": 5, "value": 1}, {"stepId": "", "value": 1}, {"value": 1},
     {"stepId": "ask", "value": 1, "more": 2}, {"stepId": "x" * 1_001, "value": 1}, [], "x"],
)  # fmt: skip
def test_a_malformed_answer_is_refused_with_an_example(message: Any) -> None:
    with pytest.raises(Refused, match="stepId") as caught:
        read(AnswerQuestion, [message])
    assert caught.value.code == "BAD_MESSAGE"


def test_an_answer_of_a_megabyte_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        read(AnswerQuestion, [{"stepId": "ask", "value": "x" * 1_000_000}])
    assert caught.value.code == "MESSAGE_TOO_LARGE"


@pytest.mark.parametrize(
    ("must_sign", "who"), [(True, "ann@example.org (web, verified)"), (False, "ann@example.org (web)")]
)
def test_an_answer_says_where_its_author_spoke_and_a_verified_name_needs_a_signature(must_sign: bool, who: str) -> None:
    schedule = asked(ask())
    schedule.run.facts = schedule.run.facts.model_copy(update={"must_sign": must_sign})
    given = answer(schedule, "yes", by="ann@example.org", via="web", verified=True)
    assert given.who == who
    assert f"by {who}" in schedule.run.log[-1].text
