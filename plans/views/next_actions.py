"""What a person may do next about a plan: one list for `plan show`, the board, summaries, lists and the web page.

Pure, and from a summary alone, so that an ended plan is answered without a worker. What is most likely wanted comes
first. Every outcome but `completed` and steps that simply run has an action.
"""

from __future__ import annotations

from typing import NamedTuple

from plansurvive.plans.errors import OUTCOME_UNKNOWN
from plansurvive.plans.flow.ids import is_pattern, lineage, pattern_of, template_of
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.model.identities import AGENT_PREFIX
from plansurvive.plans.run import ENDED, PlanStatus, Status
from plansurvive.plans.text.lists import number_of, some
from plansurvive.plans.text.safe_text import line, quoted
from plansurvive.plans.usage import OVERRUN_CODE
from plansurvive.plans.views.models.card import command
from plansurvive.plans.views.summary import MAX_FAILED, AskedStep, Summary

LISTED = 3
"""Steps that are named one by one."""
USUAL_QUEUE = "plans"
"""The task queue of a worker that no setting and no argument gives another."""


class NextAction(NamedTuple):
    """What a person may do, and how."""

    command: str
    """A line for a shell, safe to print. Upper-case words are to be replaced."""
    sentence: str
    """What it does; it completes the sentence "this command ...", such as "runs what is not done"."""


def next_actions(
    summary: Summary, *, resumed_by: str = "", unserved: str = "", undone: bool = False, views: ViewSet = NO_VIEWS
) -> list[NextAction]:
    """What may be done next; empty if nothing is left to do, or nothing but waiting.

    `resumed_by`: the latest run that resumed it. `undone`: `plan undo` has undone it since. `unserved`: its task queue,
    if no worker polls it. `views`: what features add, which say in words what they propose.
    """
    name = line(summary.plan_id)
    if resumed_by:
        return [NextAction(f"plan show {line(resumed_by)}", "shows the run that resumed it")]
    if summary.status in ENDED:
        return _undo(summary, undone) + _ended(summary, name, undone)
    found = [NextAction(worker_command(unserved), "starts a worker: none serves the plan")] if unserved else []
    if summary.status in (PlanStatus.DRAFT, PlanStatus.REVIEW):
        return found + _review(summary, name)
    if summary.status is PlanStatus.PAUSED:
        found.append(NextAction(f"plan unpause {name}", "lets steps start again"))
    return found + _asked(summary, name, views) + _lost(summary, name)


def worker_command(queue: str) -> str:
    """The command that starts a worker for a task queue; for the usual one the command that keeps it running."""
    return "plan up" if queue == USUAL_QUEUE else f"plan worker --queue {quoted(queue)}"


def _lost(summary: Summary, name: str) -> list[NextAction]:
    """What may be done about a call that was lost, while the plan runs: nothing repeats or skips it before its end."""
    lost = next((each.step_id for each in summary.failed if each.code == OUTCOME_UNKNOWN), None)
    if lost is None or name.startswith(AGENT_PREFIX):
        return []
    then = f"plan rerun {name} --from {quoted(lost)}"
    what = f"ends it when its running steps have ended; check what '{line(lost)}' did, then `{then}` calls it again"
    return [NextAction(f"plan interrupt {name}", what)]


def _review(summary: Summary, name: str) -> list[NextAction]:
    if summary.problems:
        count = number_of(summary.problems, "problem")
        return [
            NextAction(f"plan review {name}", f"shows the {count} to fix before it can start"),
            NextAction(f'plan regenerate {name} "FEEDBACK"', "has the LLM revise it"),
        ]
    if summary.status is PlanStatus.DRAFT:
        return [NextAction(f"plan watch {name}", "follows it: it is being written or checked")]
    return [
        NextAction(f"plan review {name}", "shows it to be read and changed"),
        NextAction(f"plan begin {name}", "starts it as it is"),
    ]


def _asked(summary: Summary, name: str, views: ViewSet) -> list[NextAction]:
    """What people and events are awaited for, oldest first; of many the command that shows them all."""
    asks = summary.asks or [AskedStep(plan_id=name, step_id=each, kind="approval") for each in summary.awaiting]
    people = [each for each in asks if each.kind != "event"]
    events = [each for each in asks if each.kind == "event"][:LISTED]
    found = []
    if people:
        count = f"the {len(people)} decisions that it awaits" if len(people) > 1 else "what it asks, in full"
        found.append(NextAction(f"plan pending {name}", f"shows {count}"))
    alike: dict[tuple[str, str, str], list[str]] = {}
    digests = {(each.plan_id, each.step_id): each.digest for each in people}
    for each in people:
        alike.setdefault((each.plan_id, pattern_of(each.step_id), each.kind), []).append(each.step_id)
    for (plan, pattern, kind), steps in list(alike.items())[:LISTED]:
        found.append(_decision(line(plan), steps[0], kind, views, digests.get((plan, steps[0]), "")))
        if len(steps) > 1 and kind == "approval" and is_pattern(pattern):
            sentence = f"approves all {len(steps)} items that ask now"
            found.append(NextAction(f"plan approve {line(plan)} {quoted(pattern)}", sentence))
    for each in events:
        what = quoted(each.event) if each.event and "{{" not in each.event and "$" not in each.event else "NAME"
        found.append(NextAction(f"plan event {name} {what}", f"sends the event that '{line(each.step_id)}' waits for"))
    return found


def _decision(plan: str, step: str, kind: str, views: ViewSet, digest: str) -> NextAction:
    what = line(step)
    if kind == "answer":
        return NextAction(command(plan, step, kind), f"answers the question of {what}")
    approves = views.proposals[kind].approving if kind in views.proposals else "approves"
    sentence = f"{approves} {what}; `plan deny` with --comment WHY denies"
    return NextAction(command(plan, step, kind, digest), sentence)


def _undo(summary: Summary, undone: bool) -> list[NextAction]:
    """The command that undoes what could not be undone."""
    left = [each.step_id for each in summary.undone if each.status != "completed"]
    if not left or (undone and not summary.undoes):
        return []
    what = f"tries again to undo {some(left, LISTED, line)}"
    return [NextAction(f"plan undo {line(summary.undoes or summary.plan_id)}", what)]


def _ended(summary: Summary, name: str, undone: bool) -> list[NextAction]:
    """What may be done about a plan that has ended."""
    if summary.undoes:  # it has no steps of its own to run
        return []
    found = [
        NextAction(
            f"plan rerun {name} --from {quoted(each.step_id)}",
            f"reads '{line(each.path)}' again, which changed after '{line(each.step_id)}' had read it",
        )
        for each in summary.outdated[:LISTED]
    ]
    is_agent = name.startswith(AGENT_PREFIX)  # `plan logs` and `plan rerun` are for plans
    first = next(iter(summary.failed), None)
    items = {} if is_agent else _tolerated(summary)
    if summary.status is PlanStatus.COMPLETED:
        resumes = [NextAction(f"plan resume {name}", "runs what was undone again")] if undone and not is_agent else []
        return found or [*_items_again(name, items), *resumes]
    if first is not None and not is_agent:
        what = "shows the attempts of the failed step and what they wrote"
        found.append(NextAction(f"plan logs {name} {quoted(first.step_id)}", what))
    if any(each.code == OVERRUN_CODE for each in summary.failed) or OVERRUN_CODE in summary.stopped:
        sentence = "continues it with a larger budget of LLM requests; or budget.tokens, .seconds, .cost"
        found.append(NextAction(f"plan resume {name} --set budget.calls=N", sentence))
    if summary.problems:  # it was refused before it began, and would be refused again
        found.append(NextAction(f"plan resume {name}", "checks it again, once the cause is fixed"))
        return found
    undecided = [word for word, steps in (("denied", summary.denied), ("not answered", summary.unanswered)) if steps]
    again = f" and asks again about what was {' or '.join(undecided)}" if undecided else ""
    was_undone = undone or any(each.status == Status.COMPLETED for each in summary.undone)
    done = "what is not done, or was undone" if was_undone else "what is not done"
    found += _items_again(name, items)
    kept = f", and the failed items of {_named(items)}" if items else ""
    lost = next((line(each.step_id) for each in summary.failed if each.code == OUTCOME_UNKNOWN), "")
    look = f"; check first what '{lost}' did" if lost else ""
    found.append(NextAction(f"plan resume {name}", f"runs {done}{again}; keeps the rest{kept}{look}"))
    if first is not None and not is_agent and not items:
        chosen = _failed_items(summary, _top(first.step_id))
        its = "them" if len(chosen) > 1 else "it"
        named = " and ".join(f"'{line(each)}'" for each in chosen)
        what = f"runs {named} and what depends on {its} again"
        sentence = f"{what}{', and what was undone' if was_undone else ''}{look}"
        options = " ".join(f"--from {quoted(each)}" for each in chosen)
        found.append(NextAction(f"plan rerun {name} {options}", sentence))
    return found


def _tolerated(summary: Summary) -> dict[str, list[str]]:
    """By loop, its failed items that it tolerated, so that a resume keeps them: it has not failed itself."""
    found = dict[str, list[str]]()
    for each in summary.failed:
        if pattern_of(each.step_id) != each.step_id:
            found.setdefault(_top(each.step_id), []).append(each.step_id)
    # A loop comes after what failed inside it, and of many failures the last ones are left out.
    last = _top(summary.failed[-1].step_id) if len(summary.failed) >= MAX_FAILED else ""
    failed = {each.step_id for each in summary.failed} | {last}
    return {loop: steps for loop, steps in found.items() if loop not in failed}


def _items_again(name: str, items: dict[str, list[str]]) -> list[NextAction]:
    """The command that runs failed items again: one of each loop is named, and those beside it run as well."""
    if not items:
        return []
    first = [steps[0] for steps in items.values()]
    what, its = f"'{line(first[0])}'", "it"
    if sum(map(len, items.values())) > 1:
        what, its = f"all failed items of {_named(items)}", "them"
    chosen = " ".join(f"--from {quoted(each)}" for each in first)
    return [NextAction(f"plan rerun {name} {chosen}", f"runs {what} and what depends on {its} again")]


def _named(items: dict[str, list[str]]) -> str:
    return " and ".join(f"'{line(loop)}'" for loop in items)


def _failed_items(summary: Summary, top: str) -> list[str]:
    """The items of a loop that failed, if they are few; else the step of the plan as a whole."""
    found = dict.fromkeys(_item(each.step_id) for each in summary.failed if _top(each.step_id) == top)
    items = [each for each in found if each != top]
    return items if 0 < len(items) <= LISTED else [top]


def _item(step_id: str) -> str:
    """The item of a loop of the plan that a step is, or is inside of; of others the step of the plan."""
    item = next((each for each in reversed(list(lineage(step_id))) if each.endswith("]")), "")
    return item if pattern_of(item) == f"{_top(step_id)}[*]" else _top(step_id)


def _top(step_id: str) -> str:
    """The step of the plan that a step is, or is inside of."""
    return template_of(step_id).partition(".")[0]
