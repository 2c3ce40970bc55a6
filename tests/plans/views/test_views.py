"""What clients see: the joined view, events in order and each once, what waits, and the tool history of seed 000."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.execution.approvals import decide
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import TRUNCATED, shorten
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import Options, Result, Run, Status
from plansurvive.plans.views.progress.events import asks, events, result_view
from plansurvive.plans.views.progress.pending import pending
from plansurvive.plans.views.text import text as text_of
from plansurvive.plans.views.views import brief_view, plan_view, step_files, tool_history
from tests.plans.building import NOW, TOOLS, begun, completed, failed, later, plan_of, run_of, skipped, statuses, step
from tests.plans.execution.test_schedule_model import do, do_naively, naive_of, plans, possible


def example() -> Schedule:
    schedule = begun(step("a", description="First"), step("b", "a", uses=("a",)), step("c", "bad"), step("bad"))
    schedule.start("a", later(1))
    schedule.settle("a", completed({"n": 1}), later(2))
    schedule.start("bad", later(2))
    schedule.settle("bad", failed(), later(3))
    schedule.ask("b", later(4), later(60))
    return schedule


def test_the_view_joins_what_was_asked_with_what_happened() -> None:
    schedule = example()
    view = plan_view(schedule.run, schedule)
    assert (view["id"], view["version"], view["status"], view["workspace"]) == ("p", 1, "running", "/w")
    assert (view["startedAt"], view["endedAt"], view["duration"]) == ("2026-01-20T10:30:00Z", None, 0.0)
    assert view["counts"] == {"total": 4, "blocked": 1, "ready": 1, "completed": 1, "failed": 1}
    a, b, c, bad = view["steps"]
    assert (a["order"], a["description"], a["status"], a["critical"]) == (0, "First", "completed", False)
    assert a["result"] == {
        "ok": True,
        "value": {"n": 1},
        "duration": 5.0,
        "attempt": 1,
        "timestamp": "2026-01-20T10:30:00Z",
    }
    assert (a["startedAt"], a["endedAt"]) == ("2026-01-20T10:30:01Z", "2026-01-20T10:30:02Z")
    assert (b["dependsOn"], b["needs"], b["awaiting"]) == (["a"], ["a"], "approval")
    assert (c["blockedBy"], c["never"], c["reason"]) == (["bad"], True, "'bad' failed")
    assert (bad["result"]["error"], bad["result"]["code"]) == ("it broke", "TOOL_FAILED")


@pytest.mark.parametrize(
    ("a", "mark"),
    [
        (step("a", tool="delete_file"), True),
        (step("a", tool="delete_file", requires_approval=False), False),
        (step("a", tool="read_file", requires_approval=True), True),
        (step("a", tool="http_request", args={"method": "GET"}), False),
        (step("a", tool="unheard_of"), False),
    ],
)
def test_a_step_is_marked_when_it_needs_approval(a: Step, mark: bool) -> None:
    schedule = Schedule(run_of(a))
    assert plan_view(schedule.run, schedule)["steps"][0]["requiresApproval"] is mark


def test_what_waits_for_a_person_is_listed_oldest_first() -> None:
    schedule = begun(step("a"), step("b", description="B", args={"text": "$x"}))
    schedule.ask("b", later(1), later(60))
    schedule.ask("a", later(2))
    schedule.run.steps["b"].asked = {"text": "filled"}
    first, second = pending(schedule.run)
    assert (second["stepId"], second["deadline"], second["args"]) == ("a", None, {"text": []})
    assert first == {
        "stepId": "b",
        "kind": "approval",
        "tool": "note",
        "description": "B",
        "args": {"text": "filled"},
        "since": "2026-01-20T10:30:01Z",
        "deadline": "2026-01-20T10:31:00Z",
        "version": 1,
        "queue": None,
        "workspace": "/w",
        "network": False,
        "digest": "",
        "changed": False,
        "asker": "plan p",
        "reasons": [],
        "always": "every call of note in /w, whatever its arguments, less those of steps that say "
        "`requiresApproval: true`, until plan p ends; a resumed run asks again",
    }


def test_an_event_has_the_fields_of_the_seed_and_a_number() -> None:
    schedule = example()
    ended = next(event for event in events(schedule.run, 0, 99) if event["status"] == "completed")
    assert (ended["taskId"], ended["stepId"], ended["progress"]) == ("p", "a", 100)
    assert (ended["time"], ended["result"]["value"]) == ("2026-01-20T10:30:02Z", {"n": 1})


def test_a_log_entry_is_an_event_with_logs() -> None:
    schedule = example()
    schedule.pause(later(5), "paused by ann")
    *_, event = events(schedule.run, 0, 99)
    assert (event["stepId"], event["status"]) == ("", "paused")
    assert event["logs"] == [{"time": "2026-01-20T10:30:05Z", "kind": "paused", "text": "paused by ann"}]


BOUNDED = settings(suppress_health_check=list(HealthCheck))


@BOUNDED
@given(steps=plans(), data=st.data())
def test_events_asked_for_in_pages_while_the_plan_runs_lose_nothing(steps: list[Step], data: st.DataObject) -> None:
    schedule, naive = Schedule(run_of(*steps)), naive_of(steps)
    seen: list[dict[str, Any]] = []
    schedule.begin(NOW)
    for _ in range(data.draw(st.integers(0, 25))):
        move = data.draw(st.sampled_from(possible(naive)))
        do(schedule, move)
        do_naively(naive, move)
        if data.draw(st.booleans()):
            seen += page(schedule.run, seen, data.draw(st.integers(1, 5)))
    while more := page(schedule.run, seen, data.draw(st.integers(1, 5))):
        seen += more
    told = [event["seq"] for event in seen]
    assert told == sorted(set(told)), "in order, each once"
    over = set(range(1, schedule.run.seq + 1)) - set(told)
    assert all(number < max(asked_numbers(schedule.run)) for number in over), "all but what then asked"
    replayed = dict.fromkeys(schedule.run.steps, "pending") | {
        event["stepId"]: event["status"] for event in seen if event["stepId"]
    }
    assert replayed == statuses(schedule.run), "who watches from the start ends with the view"
    late = {event["stepId"]: event["status"] for event in events(schedule.run, 0, 1_000) if event["stepId"]}
    assert late == {name: status for name, status in replayed.items() if name in late}


def asked_numbers(run: Run) -> set[int]:
    return {change.seq for state in run.steps.values() for change in asks(state)}


def page(run: Run, seen: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """The next events for who has seen these."""
    found = list(events(run, seen[-1]["seq"] if seen else 0, limit))
    assert len(found) <= limit
    return found


def test_a_decision_shows_the_status_of_its_time() -> None:
    schedule = begun(step("a"))
    schedule.run.note(LogKind.APPROVED, "step 'a' approved", NOW, "a")
    schedule.start("a", NOW)
    schedule.settle("a", completed(), NOW)
    assert [event["status"] for event in events(schedule.run, 0, 9)] == ["ready", "ready", "running", "completed"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 200 + "...[truncated]"),
        ({"a": "é"}, '{"a": "é"}'),
        (None, "null"),
        (list(range(100)), str(list(range(100)))[:200] + "...[truncated]"),
    ],
)
def test_a_value_is_cut_after_200_characters(value: Any, text: str) -> None:
    assert shorten(value) == text


def called(*outcomes: Any) -> Run:
    """A run whose steps each made one call."""
    schedule = begun(*(step(f"s{index}") for index in range(len(outcomes))), step("idle"))
    for index, outcome in enumerate(outcomes):
        schedule.start(f"s{index}", later(index))
        schedule.run.steps[f"s{index}"].calls += 1
        schedule.settle(f"s{index}", outcome, later(index + 1))
    return schedule.run


def test_tool_history_stands_under_the_index_of_its_step() -> None:
    history = tool_history(called(completed("y" * 300), failed("no such file")))
    assert list(history) == ["0", "1"]
    assert history["0"] == [
        {"tool": "note", "args": {"text": []}, "result": "y" * 200 + TRUNCATED, "timestamp": "2026-01-20T10:30:00Z"}
    ]
    assert history["1"][0]["result"] == "Error: no such file"


def test_a_step_that_called_nothing_has_no_history() -> None:
    schedule = begun(step("a"))
    schedule.settle("a", skipped(), NOW)
    assert tool_history(schedule.run) == {}


def test_a_value_kept_elsewhere_is_shown_by_its_beginning() -> None:
    large = LargeValue(sha256="ab", bytes=10_000, preview="z" * 200)
    result = Result(ok=True, large=large, timestamp=NOW)
    assert result_view(result)["value"] == "z" * 200 + TRUNCATED
    assert result_view(result)["large"]["sha256"] == "ab"
    run = called(completed())
    run.steps["s0"].result = result
    assert tool_history(run)["0"][0]["result"] == "z" * 200 + TRUNCATED


def test_files_stand_under_the_index_of_their_step() -> None:
    run = called(completed(), completed())
    run.steps["s1"].wrote = ["x", "y"]
    assert step_files(run) == {"1": ["x", "y"]}


def test_only_the_seven_statuses_are_ever_shown() -> None:
    assert [status.value for status in Status] == [
        *("pending", "blocked", "ready", "running", "completed", "failed", "skipped")
    ]


def test_arguments_an_approver_changed_are_the_ones_shown() -> None:
    run = Run.of(plan_of(step("a")), Options(), Facts(tools=TOOLS), {})
    run.steps["a"].args = {"text": "other"}
    assert plan_view(run, Schedule(run))["steps"][0]["args"] == {"text": "other"}


@pytest.mark.parametrize(
    ("tool", "args", "changed", "titles"),
    [
        ("write_file", {"path": "a.txt", "content": "x"}, {"path": "b.txt", "content": "y"},
         ("write_file a.txt", "write_file b.txt")),
        ("run_command", {"command": "rm  -rf a"}, {"command": "rm b"}, ("rm -rf a", "rm b")),
        ("run_command", {"command": "rm -rf a"}, {"command": "rm b"}, ("Tidy up", "Tidy up")),
    ],
)  # fmt: skip
def test_the_title_of_an_agents_call_follows_its_approver(
    tool: str, args: dict[str, str], changed: dict[str, str], titles: tuple[str, str]
) -> None:
    def shown(run: Run) -> list[Any]:
        schedule = Schedule(run)
        views = [plan_view(run, schedule), brief_view(run)]
        rows = text_of(run, detailed=True).splitlines()
        return [each["steps"][0]["description"] for each in views] + [
            next(row for row in rows if "] call_1: " in row).partition(": ")[2].partition(" ·")[0]
        ]

    run = begun(step("call_1", tool=tool, args=args, description=titles[0])).run
    run.literal = True
    assert shown(run) == [titles[0]] * 3
    decide(run, Decide(step_id="call_1", approved=True, by="ann", args=changed), NOW, "signal")
    assert shown(run) == [titles[1]] * 3


def test_the_brief_view_says_of_steps_what_a_list_shows_and_of_the_plan_what_the_view_says() -> None:
    schedule = example()
    whole, brief = plan_view(schedule.run, schedule), brief_view(schedule.run)
    assert {name: brief[name] for name in brief if name != "steps"} == {
        name: whole[name] for name in brief if name != "steps"
    }
    for step_whole, step_brief in zip(whole["steps"], brief["steps"], strict=True):
        common = ("id", "tool", "description", "status", "awaiting", "startedAt", "endedAt")
        assert {name: step_brief.get(name) for name in common} == {name: step_whole.get(name) for name in common}
        assert not {"value", "large"} & set(step_brief.get("result", {}))


def test_the_brief_view_tells_the_arguments_of_those_steps_that_asked() -> None:
    schedule = begun(step("a"), step("b"))
    schedule.ask("b", NOW)
    assert [step_brief.get("args") for step_brief in brief_view(schedule.run)["steps"]] == [None, {"text": []}]
    schedule.answered("b")
    schedule.start("b", NOW)
    assert "args" in brief_view(schedule.run)["steps"][1], "also when it has its answer"
