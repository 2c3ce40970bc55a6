"""How many attempts `plan logs` says that there are, of one that was not retried."""

from __future__ import annotations

import pytest

from plansurvive.features.outputs.attempts import Shown
from plansurvive.plans.run import Status
from plansurvive.plans.views.progress.logs import LoggedAttempt, LoggedStep

STEP = LoggedStep(step_id="a", tool="read_file", status=Status.FAILED, of=3)


@pytest.mark.parametrize(
    ("attempt", "of"),
    [
        (LoggedAttempt(code="NOT_FOUND"), None), (LoggedAttempt(code="BUSY", delay=1.0), 3), (LoggedAttempt(), 3),
        (LoggedAttempt(number=3, code="BUSY"), 3), (LoggedAttempt(code="WORKER_LOST"), 3),
        (LoggedAttempt(number=4, code="BUSY"), None), (LoggedAttempt(code="CANCELLED"), 3),
    ],
)  # fmt: skip
def test_a_failure_that_is_not_retried_is_no_attempt_of_several(attempt: LoggedAttempt, of: int | None) -> None:
    shown = Shown("a", STEP, attempt)
    assert (shown.of, shown.is_given_up) == (of, attempt.code == "NOT_FOUND")
