"""Calls declared not repeatable: one attempt, its outcome told again, and OUTCOME_UNKNOWN when nobody can tell."""

from __future__ import annotations

import pytest

from plansurvive.activities.workspace.effect_log import Effect
from tests.activities.attempts import Attempts

COMMAND = "echo once >> log; cat log"


@pytest.fixture
def single(attempts: Attempts) -> Attempts:
    """Attempts of one call that must not be repeated."""
    return attempts.but(repeatable=False, step="s")


async def test_a_call_whose_completion_was_lost_is_told_again_not_repeated(single: Attempts) -> None:
    first = await single.run("run_command", command=COMMAND)
    again = await single.but(again=True).run("run_command", command=COMMAND)
    assert [attempt.code for attempt in again.attempts] == ["WORKER_LOST"]
    assert again.model_copy(update={"attempts": []}) == first
    assert (single.workspace / "log").read_text() == "once\n"


async def test_a_failure_whose_completion_was_lost_is_told_again(single: Attempts) -> None:
    first = await single.error("run_command", command=COMMAND + "; exit 3")
    again = await single.but(again=True).error("run_command", command=COMMAND + "; exit 3")
    assert (again.type, again.message) == (first.type, first.message)
    assert (single.workspace / "log").read_text() == "once\n"


async def test_a_worker_that_died_in_the_middle_leaves_the_outcome_unknown(single: Attempts) -> None:
    single.effects.log.begin(Effect("plan-p/s", "call"))
    error = await single.but(again=True).error("run_command", command=COMMAND)
    assert (error.type, error.non_retryable) == ("OUTCOME_UNKNOWN", True)
    assert error.message.endswith("only when the plan has ended and is resumed, or rerun from this step")
    assert not (single.workspace / "log").exists()


async def test_a_worker_that_died_before_it_began_lost_nothing(single: Attempts) -> None:
    assert (await single.but(again=True).run("run_command", command=COMMAND)).value["stdout"] == "once\n"


async def test_a_repeatable_command_runs_again(attempts: Attempts) -> None:
    for again in (False, True):
        await attempts.but(step="s", again=again).run("run_command", command=COMMAND)
    assert (attempts.workspace / "log").read_text() == "once\nonce\n"
