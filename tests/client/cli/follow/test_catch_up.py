"""Who comes late to a big plan is told by one look what who followed it was told by its events."""

from __future__ import annotations

from plansurvive.client.cli.follow.big_plan_lines import FULL, Digest
from plansurvive.client.cli.follow.catch_up import past
from plansurvive.client.runs import BriefView, EventView
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.views.progress.events import events
from plansurvive.plans.views.views import brief_view
from tests.plans.building import begun, completed, failed, later, skipped, step


def big() -> Schedule:
    """A plan of 40 steps more than are told one by one; of each forty one fails, one is skipped, one does not end."""
    schedule = begun(*(step(f"s{index}", on_failure="block") for index in range(FULL + 40)))
    for index, name in enumerate(schedule.run.steps):
        schedule.start(name, later(index))
        schedule.run.steps[name].calls += 1
        if index % 40:
            outcome = failed(f"no {name}") if index % 40 == 1 else skipped() if index % 40 == 2 else completed(name)
            schedule.settle(name, outcome, later(index + 0.5))
    return schedule


def told(lines: Digest, happened: list[EventView]) -> list[str]:
    return [row for event in happened for row in lines.of(event)]


def brief(schedule: Schedule) -> BriefView:
    return BriefView.read(brief_view(schedule.run))


def both(schedule: Schedule) -> tuple[list[str], list[str]]:
    """What is told by one look, and by all events."""
    view = brief(schedule)
    followed = [EventView.read(event) for event in events(schedule.run, 0)]
    return told(Digest("p", view), past(view)), told(Digest("p", view), followed)


def test_progress_failures_and_the_log_are_told_alike() -> None:
    schedule = big()
    schedule.pause(later(400), "paused by ann")
    at_once, followed = both(schedule)
    assert at_once == followed
    assert sum("✗" in row for row in at_once) == 9
    assert sum("paused by ann" in row for row in at_once) == 1
    assert 35 > len(at_once) > 25


def test_an_open_question_is_told_and_a_later_one_is_known_to_be_one() -> None:
    schedule = big()
    schedule.ask("s0", later(400))
    at_once, followed = both(schedule)
    assert at_once == followed
    assert sum("plan approve p s0" in row for row in at_once) == 1
    lines, before = Digest("p", brief(schedule)), schedule.run.seq
    told(lines, past(brief(schedule)))
    schedule.ask("s40", later(401))
    [asked] = [EventView.read(event) for event in events(schedule.run, before)]
    assert not lines.knows(asked), "its arguments are asked for first"
    lines.learn(brief(schedule))
    assert any("plan approve p s40" in row for row in lines.of(asked))


def test_what_has_not_started_is_only_known_to_be_ready() -> None:
    [event] = past(brief(begun(step("a"))))
    assert (event.seq, event.step_id, event.status) == (1, "a", "ready")
