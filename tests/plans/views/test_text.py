"""The display of seed 000 to the character."""

from __future__ import annotations

from plansurvive.plans.activity_io import Attempt, PastCall, Return
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import note_files
from plansurvive.plans.model import Problem, Step
from plansurvive.plans.run import PlanStatus, Run
from plansurvive.plans.views.text import text
from tests.plans.building import NOW, begun, completed, failed, later, run_of, step

SEED = """\
Plan: Build Data Pipeline
========================================
Progress: 2/3 (66.7%)

Steps:
  0: [✓] Load CSV data
      Notes: Loaded 1000 rows
      Tools: read_file (1 call)
      Files: -
  1: [✓] Process and save results
      Notes: Saved processed data
      Tools: run_python (1 call)
      Files: /workspace/output.csv
  2: [ ] Generate report (depends on: [1])"""


def pipeline() -> Schedule:
    """The plan of seed 000, two steps done."""
    run = run_of(
        step("load", tool="read_file", description="Load CSV data", notes="Loaded 1000 rows"),
        step(
            "process", "load", tool="run_python", description="Process and save results", notes="Saved processed data"
        ),
        step("report", "process", description="Generate report"),
        title="Build Data Pipeline",
    )
    schedule = Schedule(run)
    schedule.begin(NOW)
    for name in ("load", "process"):
        schedule.start(name, NOW)
        run.steps[name].calls += 1
        schedule.settle(name, completed(), later(2))
    note_files(run, "process", Return(duration=1, wrote={"/workspace/output.csv": None}))
    return schedule


def test_the_display_is_that_of_the_seed() -> None:
    schedule = pipeline()
    assert text(schedule.run) == SEED
    schedule.ask("report", NOW)
    assert text(schedule.run).splitlines()[-7:] == [
        "  2: [?] Generate report (depends on: [1])",
        "      Notes: awaiting approval",
        "      Call:",
        "        tool         │ note",
        "        what         │ Generate report",
        "        workspace    │ /w",
        "        text         = []",
    ]


def test_a_step_that_has_not_begun_shows_what_it_depends_on_stated_or_not() -> None:
    schedule = Schedule(run_of(step("a"), step("b"), step("c", "b", uses=("a",))))
    assert text(schedule.run).splitlines()[-3:] == ["  0: [ ] a", "  1: [ ] b", "  2: [ ] c (depends on: [0, 1])"]


def test_a_failed_step_shows_its_error_and_a_blocked_one_its_reason() -> None:
    schedule = begun(step("a"), step("b", "a"))
    schedule.start("a", NOW)
    schedule.run.steps["a"].calls += 1
    schedule.settle("a", failed("no such file"), NOW)
    assert text(schedule.run).splitlines()[5:] == [
        *("  0: [✗] a", "      Notes: no such file", "      Tools: note (1 call)", "      Files: -"),
        *("  1: [ ] b (depends on: [0])", "      Notes: 'a' failed"),
    ]


def test_a_run_shows_the_same_after_it_was_carried_on() -> None:
    schedule = pipeline()
    again = Run.model_validate_json(schedule.run.model_dump_json())
    assert text(again) == SEED


def test_the_text_of_a_big_plan_has_as_many_steps_as_asked_for() -> None:
    run = begun(*(step(f"s{index}") for index in range(10)), *(step(f"t{index}", "s0") for index in range(990))).run
    assert len(text(run).splitlines()) == 1_005
    short = text(run, 8).splitlines()
    assert len(short) == 13
    assert short[-1] == "  … and 990 blocked, 3 ready"


def test_a_draft_shows_what_keeps_it_from_starting_and_a_refused_plan_says_it_once() -> None:
    run = run_of(step("a"))
    run.problems = [Problem(code="UNKNOWN_TOOL", step_id="a", field="tool", message=f"no tool {at}") for at in range(7)]
    rows = text(run, detailed=True).splitlines()
    shown = [row for row in rows if row.startswith("Problem: ")]
    assert shown[0] == "Problem: UNKNOWN_TOOL: step 'a' tool: no tool 0"
    assert shown[5:] == ["Problem: 2 more; see: plan review p"]
    run.ended = NOW
    assert "Problem: " not in text(run, detailed=True)


def test_inputs_are_no_step_that_another_one_depends_on() -> None:
    run = run_of(step("a", args={"text": "{{inputs.name}}"}), step("b", args={"text": "{{a}} {{inputs.name}}"}))
    rows = text(run, detailed=True).splitlines()
    assert [row for row in rows if "depends on" in row] == ["  [ ] b (depends on: [a])"]


def test_an_attempt_that_only_found_that_a_person_must_approve_is_no_call_of_the_tool() -> None:
    schedule = begun(step("a"))
    attempt = Attempt(number=1, began=NOW, code="APPROVAL_REQUIRED", error="ask")
    asked = PastCall(tool="note", args={}, result="ask", time=NOW, attempt=attempt)
    schedule.run.steps["a"].past = [asked]
    schedule.ask("a", NOW)
    assert "Tools: note" not in text(schedule.run, detailed=True)
    schedule.run.steps["a"].past = [asked, asked.model_copy(update={"attempt": None})]
    assert "Tools: note (1 call)" in text(schedule.run, detailed=True), "the control"


def test_rows_that_say_nothing_are_left_out_and_a_long_call_is_cut_where_it_is_not_decided_about() -> None:
    schedule = begun(step("a", args={"text": "row\n" * 200}), step("b"))
    schedule.start("b", NOW)
    schedule.settle("b", completed(), later(2))
    schedule.ask("a", NOW)
    found = text(schedule.run, detailed=True)
    assert not any(row.endswith(": -") for row in found.splitlines())
    [more] = [row for row in found.splitlines() if "more lines; all of it: plan pending" in row]
    assert found.count("│ row") < 50, more
    assert text(schedule.run).count("│ row") == 200, "the whole call for programs"


def test_a_plan_in_review_shows_what_each_step_would_do() -> None:
    inner = {"id": "say", "tool": "run_command", "when": "n == 'x'", "args": {"command": "echo {{n}}"}}
    run = run_of(
        step("a", tool="write_file", when="inputs.b", args={"path": "a.txt", "content": "1\n" * 90}),
        Step.model_validate({"id": "each", "forEach": {"items": ["x", "y"], "as": "n"}, "steps": [inner]}),
    )
    run.status = PlanStatus.REVIEW
    rows = [" ".join(row.split()) for row in text(run, detailed=True).splitlines()]
    for row in ("Tool: write_file", "when │ inputs.b", "path │ a.txt", "- say [each.say]", "when │ n == 'x'"):
        assert row in rows
    assert "… all of it: plan review p" in rows
    assert any(row.startswith("forEach") for row in rows)
    run.status = PlanStatus.RUNNING
    assert "Tool: write_file" not in text(run, detailed=True)
    assert "Tool: write_file" not in text(run)
