"""Which runs must leave a worker's cache after a query: activations as they were seen (length, time, replay, job)."""

from __future__ import annotations

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation

from plansurvive.runtime.service.early_events import LEGACY, MOST, EarlyEvents, Evictions

Seen = tuple[int, float, bool, str]
QUERY, START, SIGNAL, LOCAL = "query_workflow", "initialize_workflow", "signal_workflow", "resolve_activity"


def activation(seen: Seen, query_id: str = LEGACY) -> WorkflowActivation:
    length, time, is_replaying, job = seen
    act = WorkflowActivation(run_id="run", history_length=length, is_replaying=is_replaying)
    act.timestamp.FromNanoseconds(round(time * 1e9))
    getattr(act.jobs.add(), job).SetInParent()
    if job == QUERY:
        act.jobs[0].query_workflow.query_id = query_id
    return act


def answered(seen: list[Seen], evictions: Evictions | None = None, query_id: str = LEGACY) -> list[bool]:
    """For each query, whether its run must leave the cache."""
    early = EarlyEvents((evictions or Evictions()).is_first)
    found = [(each[3], early.are_answered(activation(each, query_id))) for each in seen]
    assert not any(answer for job, answer in found if job != QUERY)
    return [answer for job, answer in found if job == QUERY]


EARLY = [
    pytest.param(
        [(6, 5.724, True, START), (6, 5.730, True, LOCAL), (11, 5.730, False, SIGNAL), (11, 5.730, True, QUERY)],
        id="a check whose task was cut in two before it ended",
    ),
    pytest.param(
        [(3, 7.949, True, START), (3, 7.976, True, LOCAL), (11, 8.015, False, SIGNAL), (11, 8.015, True, QUERY)],
        id="a check whose task was cut in two when it ended",
    ),
    pytest.param(
        [(3, 7.949, True, START), (3, 7.976, True, LOCAL), (8, 7.949, False, SIGNAL), (8, 7.949, True, QUERY)],
        id="a check in one task",
    ),
    pytest.param(
        [
            (3, 7.9, True, START), (3, 8.0, True, LOCAL), (8, 7.9, False, SIGNAL), (8, 8.5, False, LOCAL),
            (8, 7.9, True, QUERY),
        ],
        id="a local activity that follows early events",
    ),
]  # fmt: skip


@pytest.mark.parametrize("seen", EARLY)
def test_a_run_that_was_shown_events_before_their_task_must_leave_the_cache(seen: list[Seen]) -> None:
    assert answered(seen) == [True]


def test_a_run_in_the_cache_stays_when_it_is_queried() -> None:
    seen = [
        (3, 1.0, False, START), (3, 1.0, True, QUERY), (3, 1.2, False, LOCAL), (3, 1.0, True, QUERY),
        (9, 2.0, False, SIGNAL), (9, 2.0, True, QUERY), (9, 2.0, True, QUERY),
    ]  # fmt: skip
    assert answered(seen) == [False] * 4


def test_a_run_that_is_only_replayed_for_a_query_stays() -> None:
    assert answered([(3, 1.0, True, START), (3, 1.2, True, LOCAL), (9, 2.0, True, SIGNAL), (9, 2.0, True, QUERY)]) == [
        False
    ]


TAKEN_OVER = [(3, 1.0, True, START), (3, 1.2, True, LOCAL), (12, 9.0, False, SIGNAL), (12, 9.0, True, QUERY)]
"""The same to see as early events, but the task of the signal is real: its worker had died before."""


def test_a_run_that_another_worker_had_is_played_through_again_once_at_most() -> None:
    evictions = Evictions()
    assert [answered(TAKEN_OVER, evictions)[0] for _ in range(3)] == [True, False, False]
    assert answered(TAKEN_OVER, Evictions(), "1f0c-of-a-task") == [False], "a query that came with the task"


def test_suspected_runs_do_not_use_up_the_memory() -> None:
    evictions = Evictions()
    for number in range(MOST):
        assert evictions.is_first(f"run-{number}")
    assert not evictions.is_first("run-0")
    assert evictions.is_first("another")
    assert evictions.is_first("run-0")
