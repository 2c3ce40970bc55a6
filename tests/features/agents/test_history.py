"""The history of agent runs: seed 001's operations, queries, eviction and file, as values."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from plansurvive.features.agents.history_file import (
    Damage,
    entry_of_summary,
    history_text,
    read_history,
    run_summary,
    summary_with_successor,
)
from plansurvive.features.agents.model.history import (
    Entry,
    History,
    Spawn,
    Status,
    active,
    applied,
    complete,
    evicted,
    find,
    interrupt,
    of_plan,
    rebuilt,
    resumable,
    resume,
    settled,
    spawn,
    written,
)
from plansurvive.plans.activity_io import AgentEvent

EXAMPLE = (Path(__file__).parent / "golden" / "agent-history.json").read_text(encoding="utf-8").removesuffix("\n")
NOON = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)


def at(minute: int) -> datetime:
    """That many minutes after noon."""
    return NOON + timedelta(minutes=minute)


def example() -> History:
    """The seed's example file."""
    history = read_history(EXAMPLE)
    assert isinstance(history, History)
    return history


def entry(name: str, status: Status = "completed", minute: int = 0, **fields: Any) -> Entry:
    """An entry of the history."""
    ended = None if status == "spawned" else written(at(minute + 1))
    return Entry(
        agent_id=name,
        task_description="x",
        timestamp=written(at(minute)),
        status=status,
        completion_timestamp=ended,
        **fields,
    )


def ids(history: History) -> list[str]:
    """The ids in their order."""
    return [item.agent_id for item in history.entries]


def test_the_seeds_example_file_round_trips_byte_for_byte() -> None:
    assert history_text(example()) == EXAMPLE


def test_an_empty_history_is_the_template() -> None:
    assert history_text(History()) == '{\n  "version": "1.0",\n  "max_entries": 50,\n  "entries": []\n}'


def test_fields_of_other_programs_are_kept() -> None:
    data = json.loads(EXAMPLE)
    data["entries"][0]["cost"] = {"usd": 0.1}
    text = json.dumps(data, indent=2)
    history = read_history(text)
    assert isinstance(history, History)
    assert history_text(history) == text


def test_a_spawned_run_is_written_as_in_the_seed() -> None:
    run = Spawn(agent_id="a5023ff", agent_type="backend-specialist", plan="02", task_group="API Endpoints")
    history = spawn(History(), run, datetime(2026, 1, 15, 14, 22, 10, tzinfo=UTC))
    done = complete(history, "a5023ff", "completed", datetime(2026, 1, 15, 14, 45, 32, tzinfo=UTC))
    assert json.loads(history_text(done))["entries"][0] == json.loads(EXAMPLE)["entries"][0]
    assert list(json.loads(history_text(done))["entries"][0]) == list(json.loads(EXAMPLE)["entries"][0])


def test_a_run_without_a_plan_is_described_by_its_task() -> None:
    only = spawn(History(), Spawn(agent_id="a", task_group="List all functions"), NOON).entries[0]
    assert (only.task_description, only.plan) == ("List all functions", None)


@pytest.mark.parametrize("status", ["completed", "failed", "timeout"])
def test_a_run_ends_in_one_of_three_ways(status: Any) -> None:
    history = complete(spawn(History(), Spawn(agent_id="a"), NOON), "a", status, at(5))
    assert (history.entries[0].status, history.entries[0].completion_timestamp) == (status, "2026-01-15T12:05:00Z")


def test_resuming_links_both_runs() -> None:
    run = Spawn(agent_id="old", agent_type="frontend-specialist", plan="03", task_group="Frontend")
    stopped = interrupt(spawn(History(), run, NOON), "old", at(1))
    old, new = resume(stopped, "old", "new", at(2)).entries
    assert (old.status, old.resumed_by, old.completion_timestamp) == ("resumed", "new", "2026-01-15T12:01:00Z")
    assert (new.status, new.resumes, new.plan, new.agent_type) == ("spawned", "old", "03", "frontend-specialist")
    assert new.task_description == "Execute plan 03: Frontend"


def test_resuming_an_unknown_run_still_records_the_new_one() -> None:
    only = resume(History(), "gone", "new", NOON).entries
    assert [(item.agent_id, item.resumes, item.task_description) for item in only] == [
        ("new", "gone", "Resumed execution")
    ]


def test_an_operation_on_an_unknown_run_changes_nothing() -> None:
    assert complete(example(), "nobody", "failed", NOON) == example()
    assert interrupt(example(), "nobody", NOON) == example()


def test_repeating_an_operation_changes_nothing() -> None:
    history = example()
    for event in (
        AgentEvent(kind="spawned", agent_id="x", time=NOON),
        AgentEvent(kind="interrupted", agent_id="x", time=at(1)),
        AgentEvent(kind="resumed", agent_id="y", resumes="x", time=at(2)),
        AgentEvent(kind="completed", agent_id="y", time=at(3)),
    ):
        history = applied(history, event)
        assert applied(history, event) == history


def test_of_two_entries_with_one_id_the_later_is_meant() -> None:
    history = History(entries=[entry("a", "spawned", 9), entry("a", "spawned", 1)])
    changed = complete(history, "a", "failed", at(10))
    assert [item.status for item in changed.entries] == ["failed", "spawned"]
    found = find(changed, "a")
    assert found is not None
    assert found.timestamp == written(at(9))


def test_all_runs_in_progress_are_active_the_newest_first() -> None:
    entries = [entry("a", "spawned", 1), entry("b", "interrupted", 3), entry("c", "spawned", 2), entry("d", minute=4)]
    assert [item.agent_id for item in active(History(entries=entries))] == ["c", "a"]
    assert [item.plan for item in active(example())] == ["03"]
    assert active(History()) == []


@pytest.mark.parametrize("status", ["failed", "timeout", "completed"])
def test_a_run_that_is_resumed_keeps_how_it_ended(status: Any) -> None:
    ended = complete(spawn(History(), Spawn(agent_id="old"), NOON), "old", status, at(1))
    old, new = resume(ended, "old", "new", at(2)).entries
    assert (old.status, old.resumed_by, old.completion_timestamp) == (status, "new", "2026-01-15T12:01:00Z")
    assert (new.status, new.resumes) == ("spawned", "old")
    assert resumable(complete(History(entries=[old, new]), "new", "completed", at(3))) is None


def test_an_interruption_that_is_recorded_late_does_not_open_a_resumed_run_again() -> None:
    history = resume(spawn(History(), Spawn(agent_id="old"), NOON), "old", "new", at(2))
    late = interrupt(history, "old", at(1))
    assert [(item.agent_id, item.status) for item in late.entries] == [("old", "resumed"), ("new", "spawned")]
    assert resumable(complete(late, "new", "completed", at(3))) is None


def test_a_rebuilt_history_knows_who_was_resumed_from_the_run_that_resumes() -> None:
    entries = [
        entry("stopped", "interrupted", 1),
        entry("lost", "failed", 2),
        entry("next", minute=3, resumes="stopped"),
        entry("again", minute=4, resumes="lost"),
    ]
    found = {item.agent_id: (item.status, item.resumed_by) for item in rebuilt(entries).entries}
    assert found["stopped"] == ("resumed", "next")
    assert found["lost"] == ("failed", "again")
    assert resumable(rebuilt(entries)) is None


def test_the_server_settles_only_what_is_in_progress() -> None:
    history = History(entries=[entry("a", "spawned"), entry("b", "interrupted"), entry("c", "spawned")])
    ends: list[tuple[str, Status, datetime]] = [
        ("a", "interrupted", at(9)), ("b", "failed", at(9)), ("c", "spawned", at(9)), ("nobody", "failed", at(9)),
    ]  # fmt: skip
    after = settled(history, ends)
    assert [item.status for item in after.entries] == ["interrupted", "interrupted", "spawned"]
    assert after.entries[0].completion_timestamp == written(at(9))
    assert settled(after, ends) == after


def test_the_most_recent_interrupted_or_spawned_run_can_be_resumed() -> None:
    found = resumable(example())
    assert found is not None
    assert found.agent_id == "c9245bb"


def test_a_run_that_was_resumed_is_not_offered_again() -> None:
    history = complete(example(), "c9245bb", "completed", NOON)
    assert resumable(history) is None


def test_times_are_compared_as_moments_not_as_texts() -> None:
    early = entry("early", "interrupted").model_copy(update={"timestamp": "2026-01-15T14:30:00+03:00"})
    assert resumable(History(entries=[early, entry("late", "interrupted")])) == entry("late", "interrupted")


def test_the_runs_of_a_plan_come_in_time_order() -> None:
    entries = [entry("b", minute=2, plan="1"), entry("x", plan="2"), entry("a", minute=1, plan="1")]
    assert [item.agent_id for item in of_plan(History(entries=entries), "1")] == ["a", "b"]


def test_a_plan_is_found_by_its_id_and_by_that_of_each_of_its_runs() -> None:
    history = History(entries=[entry("b", minute=2, plan="agp1"), entry("a", minute=1, plan="agp1"), entry("x")])
    for name in ("agp1", "agp1-r2", "agp1-r17"):
        assert [item.agent_id for item in of_plan(history, name)] == ["a", "b"]
    odd = History(entries=[entry("c", plan="route-r2")])  # another program's entry, whose plan looks like a run
    assert [item.agent_id for item in of_plan(odd, "route-r2")] == ["c"]


def full(status: Status, **fields: Any) -> History:
    """Fifty runs, all in one status."""
    return History(entries=[entry(f"r{number}", status, number, **fields) for number in range(50)])


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_the_fifty_first_run_puts_out_the_oldest_that_ended(status: Status) -> None:
    after = spawn(full(status), Spawn(agent_id="new"), at(60))
    assert ids(after) == [*(f"r{number}" for number in range(1, 50)), "new"]


def test_the_oldest_is_the_oldest_by_time_not_by_place() -> None:
    history = full("completed")
    turned = history.model_copy(update={"entries": history.entries[::-1]})
    assert "r0" not in ids(spawn(turned, Spawn(agent_id="new"), at(60)))


def test_spawned_runs_are_never_put_out() -> None:
    after = spawn(full("spawned"), Spawn(agent_id="new"), at(60))
    assert len(after.entries) == 51


def test_an_interrupted_run_nobody_resumed_is_never_put_out() -> None:
    assert len(spawn(full("interrupted"), Spawn(agent_id="new"), at(60)).entries) == 51


def test_a_resumed_run_goes_when_none_has_ended() -> None:
    history = full("interrupted")
    entries = [*history.entries[:20], entry("r20", "resumed", 20, resumed_by="r21"), *history.entries[21:]]
    assert "r20" not in ids(spawn(History(entries=entries), Spawn(agent_id="new"), at(60)))


def test_an_interrupted_run_that_another_resumes_goes_as_well() -> None:
    history = full("interrupted")
    entries = [*history.entries[:49], entry("r49", "spawned", 49, resumes="r7")]
    assert "r7" not in ids(spawn(History(entries=entries), Spawn(agent_id="new"), at(60)))


def test_what_ended_goes_before_what_was_resumed_and_time_outs_go_last() -> None:
    entries = [
        entry("late", "timeout", 0),
        entry("old", "resumed", 1, resumed_by="x"),
        entry("done", "completed", 2),
        entry("on", "spawned", 3),
    ]
    left = [ids(evicted(History(max_entries=limit, entries=entries))) for limit in (3, 2, 1)]
    assert left == [["late", "old", "on"], ["late", "on"], ["on"]]


def test_a_much_too_long_history_is_brought_to_its_limit() -> None:
    history = History(entries=[entry(f"r{number}", minute=number) for number in range(1_000)])
    assert len(spawn(history, Spawn(agent_id="new"), at(2_000)).entries) == 50


def test_a_history_is_rebuilt_in_time_order_without_doubles() -> None:
    entries = [entry("b", minute=2), entry("a", minute=1), entry("b", minute=2), entry("b", minute=3)]
    assert ids(rebuilt(entries)) == ["a", "b", "b"]


def test_events_are_the_operations() -> None:
    history = applied(History(), AgentEvent(kind="spawned", agent_id="a", time=NOON, plan="1", task_group="x"))
    history = applied(history, AgentEvent(kind="interrupted", agent_id="a", time=at(1)))
    history = applied(history, AgentEvent(kind="resumed", agent_id="b", resumes="a", time=at(2)))
    history = applied(history, AgentEvent(kind="timeout", agent_id="b", time=at(3)))
    assert [(item.agent_id, item.status) for item in history.entries] == [("a", "resumed"), ("b", "timeout")]


def broken(**changes: Any) -> str:
    """The example with something else in its first entry."""
    data = json.loads(EXAMPLE)
    data["entries"][0] |= changes
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "saved"),
    [
        ("", 0),
        (EXAMPLE[:300], 0),
        (EXAMPLE + EXAMPLE, 0),
        (EXAMPLE.replace('"1.0"', '"2.0"'), 0),
        ('{"version": "1.0", "max_entries": 50, "entries": null}', 0),
        ("[]", 0),
        ("null", 0),
        (broken(timestamp="yesterday"), 2),
        (broken(status="happy"), 2),
        (broken(agent_id=7), 2),
        ("x" * 9_000_000, 0),
        (b"\xff\xfe".decode("latin-1"), 0),
    ],
)
def test_a_damaged_file_is_told_from_a_history_and_good_entries_are_saved(text: str, saved: int) -> None:
    found = read_history(text)
    assert isinstance(found, Damage)
    assert found.reason
    assert len(found.saved) == saved


def test_a_summary_tells_enough_to_recover_the_run() -> None:
    for run in example().entries:
        status = run.status
        assert entry_of_summary(run_summary(run, status, "## Answer\n\n- Agent: `other`")) == run
        task = run.task_description.removeprefix(f"Execute plan {run.plan}: ")
        titled = run.model_copy(update={"task_description": task})  # as an agent's SUMMARY.md has it
        assert entry_of_summary(run_summary(titled, status)) == run


@pytest.mark.parametrize("status", ["interrupted", "failed", "timeout"])
def test_a_summary_tells_who_resumed_the_run(status: Status) -> None:
    run = entry("old", status, agent_type="general-purpose")
    text = summary_with_successor(run_summary(run, status, "## Result\n\n- Resumed by: `x`"), "new")
    assert summary_with_successor(text, "new") == text
    assert text.endswith("- Resumed by: `x`\n")
    found = entry_of_summary(text)
    assert found is not None
    assert (found.status, found.resumed_by) == ("resumed" if status == "interrupted" else status, "new")
    assert entry_of_summary(run_summary(found, found.status)) == found


def test_a_plans_summary_counts_as_a_run_of_its_own() -> None:
    text = (
        "# Release notes\n\n- Plan: `p1`\n- Status: partial\n- Steps: 2 completed (of 3)\n- Duration: 1.0 s\n"
        "- Started: 2026-01-15T12:00:00Z\n- Ended: 2026-01-15T12:01:00Z\n\n## Failed\n\n- `s`: x\n"
    )
    found = entry_of_summary(text)
    assert found is not None
    assert (found.agent_id, found.plan, found.status) == ("plan-p1", "p1", "failed")
    assert found.task_description == "Execute plan p1: Release notes"


@pytest.mark.parametrize("text", ["", "# Title", "- Plan: `p`\n- Status: completed\n- Started: -", "- Plan: ``"])
def test_a_summary_that_tells_too_little_is_left_out(text: str) -> None:
    assert entry_of_summary(text) is None
