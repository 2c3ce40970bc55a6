"""A plan as Markdown for the Temporal UI, and as a Mermaid or Graphviz graph.

Control and bidirectional characters in texts of plans and tools are escaped, so that a step's output cannot manipulate
the reader's screen (FAULTS, T18).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plansurvive.plans.children.asked import below
from plansurvive.plans.definition.scopes import UNDO
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.model import Plan
from plansurvive.plans.run import PlanStatus, Run, Status
from plansurvive.plans.run.undone import shown_steps
from plansurvive.plans.step_state import DENIALS
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import StepView
from plansurvive.plans.views.progress.closing import UNDO_WORDS, undo_text
from plansurvive.plans.views.progress.pending import card
from plansurvive.plans.views.steps.call_text import call_rows
from plansurvive.plans.views.steps.child import in_words
from plansurvive.plans.views.steps.listing import root_of
from plansurvive.plans.views.steps.row import MARKS, row
from plansurvive.plans.views.steps.standing import Standing, failures, folded_ids, is_inside, top_counts, top_denials
from plansurvive.plans.views.steps.words import inside_line, what

DETAIL_CALLS, DETAIL_CHARACTERS = 5, 6_000
"""Maximum number and length of the pending calls in the current details, which Temporal shows whole."""
DETAIL_STEPS = 40
"""Maximum number of steps in the current details; bigger plans are abridged."""
_MERMAID = re.compile(r'["#<>&;%`]')
"""Characters special to Mermaid even inside quotes: entities, HTML, `%%{...}%%` directives."""
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")


def markdown(plan: Plan) -> str:
    """A plan as a Markdown list, for the static details of a workflow."""
    rows = [f"**{md(plan.title or plan.id or 'plan')}**", ""]
    rows += [
        f"{index + 1}. `{step.id}` {md(step.description)} — {md(what(step))}"
        for index, step in enumerate(plan.steps[:200])
    ]
    return "\n".join([*rows, *_rest(len(plan.steps) - 200), *_END])


_END = ["", "---", "", "_end_"]
"""Sacrificial last block: the Temporal UI clips the last block of a text (TEMPORAL.md 5)."""


def details(run: Run, schedule: ReadinessIndex) -> str:
    """The current state of the plan, for the workflow's current details; abridged, so its cost is bounded."""
    rows = [f"**{md(run.plan.title or run.plan.id or '')}** · {run.status.value} · {_counts(schedule)}", ""]
    if run.stopped:
        rows += [f"Stopped: {md(run.stopped)}", ""]
    if run.ended is None:
        rows += [row for each in run.notices.values() if each.holds for row in (f"It {md(each.text)}", "")]
    if run.problems:
        rows += [f"Fix before the plan can start: {md(run.problems[0].text[:300])}", ""]
    if schedule.awaiting and run.status is not PlanStatus.REVIEW:
        for what_for, names in _asking(schedule):
            rows += [f"Awaiting {what_for}: " + ", ".join(map(code, folded_ids(names, 10))), ""]
        rows += _calls(run, schedule)
    rows += _below(run, schedule)
    moving = (name for name in schedule.moving(DETAIL_STEPS) if not is_inside(schedule, name))
    shown = [schedule.step(name) for name in moving]
    if len(run.plan.steps) <= DETAIL_STEPS:
        shown = shown_steps(run)[: 2 * DETAIL_STEPS]
    standing, inner = Standing(schedule), _failures(run, schedule)
    for step in shown:
        state, stands = run.steps[step.id], row(run.steps[step.id])
        note = stands.reason or stands.error
        rows.append(
            f"- [{stands.mark}] `{step.id}` {md(step.description or what(step))} · {stands.word}"
            + "".join(f" · {md(each[:200])}" for each in run.views.standing(run.plan.id or "", step, state))
            + (f" · {md(inside)}" if (inside := standing.line(step.id)) else "")
            + (f" · {md(note[:200])}" if note else "")
            + (f" · {md(undo)}" if (undo := undo_text(run, step)) else "")
        )
        rows += inner.get(step.id, ())
    return "\n".join([*rows, *_rest(len(shown_steps(run)) - len(shown)), *_END])


def _failures(run: Run, schedule: ReadinessIndex) -> dict[str, list[str]]:
    """The last steps inside blocks and loops that failed, by the step of the plan."""
    rows: dict[str, list[str]] = {}
    for name in failures(schedule) if run.opened else ():
        result = run.steps[name].result
        text = f"    - [{MARKS['failed']}] {code(name)} · {md((result.error or '')[:200]) if result else ''}"
        rows.setdefault(root_of(run, name), []).append(text)
    return rows


def _counts(schedule: ReadinessIndex) -> str:
    """The number of steps by status. One that awaits a decision is not called ready as well."""
    number = dict(top_counts(schedule))
    for name in (*schedule.awaiting, *schedule.recovering, *schedule.expecting):
        if not is_inside(schedule, name):
            number[schedule.run.steps[name].status] -= 1
    denials = top_denials(schedule)
    number[Status.SKIPPED] = number.get(Status.SKIPPED, 0) - denials.total()
    parts = [(number.get(status, 0), status.value) for status in Status]
    parts += [(denials[word], word) for word in DENIALS.values()]
    parts += [(len(names), f"awaiting {what}") for what, names in _asking(schedule)]
    parts += [(len(schedule.expecting), "awaiting event"), (len(schedule.recovering), "awaiting recovery")]
    return ", ".join(f"{count} {name}" for count, name in parts if count)


def _asking(schedule: ReadinessIndex) -> list[tuple[str, list[str]]]:
    """The steps that await a person, by what they await."""
    found: dict[str, list[str]] = {"approval": [], "answer": []}
    for name in schedule.awaiting:
        found[schedule.run.steps[name].awaiting or "approval"].append(name)
    return [(what, names) for what, names in found.items() if names]


def _calls(run: Run, schedule: ReadinessIndex) -> list[str]:
    """What awaits a person, each call or question in full as a block of code, or not at all if there is no room."""
    rows: list[str] = []
    room = DETAIL_CHARACTERS
    for name in list(schedule.awaiting)[: DETAIL_CALLS + 1]:
        asked = card(run, schedule.step(name))
        block = [f"    {row}" for row in call_rows(asked)] if asked.characters <= room else []
        room -= sum(map(len, block))
        if not block or room < 0 or len(schedule.awaiting) > DETAIL_CALLS:
            return [*rows, f"All of the calls: `plan pending {run.plan.id}`", ""]
        rows += [f"`{name}`:", "", *block, ""]
    return rows


def _below(run: Run, schedule: ReadinessIndex) -> list[str]:
    """What agents and child plans await, each with the command that shows it."""
    found = below(schedule) if run.status in (PlanStatus.RUNNING, PlanStatus.PAUSED) else []
    rows = []
    for each in found[:DETAIL_CALLS]:
        more = f" and {each.more} more" if each.more else ""
        names = ", ".join(map(code, folded_ids((asked.path for asked in each.asked), 10)))
        rows += [f"Awaiting a person in {code(each.plan_id)} of step {code(each.step_id)}: {names}{more}", ""]
    if rows:
        rows += [f"All of them: `plan pending {run.plan.id}`", ""]
    return rows


def _rest(count: int) -> list[str]:
    return ["", f"… and {count} more"] if count > 0 else []


def md(value: str) -> str:
    """Escape a text for Markdown: on one line, safe to show, markup taken literally."""
    return _MARKDOWN.sub(r"\\\1", line(str(value)))


def code(value: str) -> str:
    """A name as inline code in Markdown; as escaped text if it contains a backtick, which would end the code."""
    return md(value) if "`" in value else f"`{line(value)}`"


class Node(NamedTuple):
    """A step in a graph. `status` is None for a plan that was not started."""

    id: str
    text: str
    needs: Sequence[str]
    status: str | None = None
    inside: Sequence[Node] = ()
    folded: str = ""
    """What is inside a block or loop of a started plan, and what became of an undo, in one line."""

    @classmethod
    def of(cls, step: StepView) -> Node:
        """The node of a step of a started plan; a block or loop is one node, marked if something in it needs a look."""
        text, inside = step.description or what(step), step.inside
        if step.child is not None and (told := in_words(step.child.status, step.child.counts, len(step.child.pending))):
            text = f"{text} ({told})"
        undo = f"↶ {UNDO_WORDS[step.undo.status]}" if step.undo is not None and step.undo.status else ""
        needs = [step.id.removesuffix(f".{UNDO}")] if step.closes == UNDO else step.needs
        if inside is None:
            return cls(step.id, text, needs, step.status, folded=undo)
        status, told = step.status.value, inside_line(inside)
        told = " · ".join(filter(None, (told, undo)))
        asks = any(word.startswith("awaiting ") for word in inside.counts)
        if step.status is not Status.FAILED and (asks or inside.counts.get("failed")):
            status, told = ("waiting", f"? {told}") if asks else ("troubled", f"✗ {told}")
        return cls(step.id, text, needs, status, folded=told)


def mermaid(nodes: Sequence[Node]) -> str:
    """The graph in Mermaid syntax, coloured by status."""
    rows = ["flowchart TD"]
    names = {node.id: f"s{index}" for index, node in enumerate(_all(nodes))}
    for node in nodes:
        rows += _mermaid_rows(node, names, "    ")
    for before, after in _edges(nodes):
        rows.append(f"    {names[before]} --> {names[after]}")
    colours = {"completed": "#bfb", "failed": "#fbb", "running": "#bdf", "skipped": "#ddd", "blocked": "#fed",
               "waiting": "#ff9", "troubled": "#fca"}  # fmt: skip
    used = {node.status for node in _all(nodes)}
    return "\n".join(rows + [f"    classDef {name} fill:{colour}" for name, colour in colours.items() if name in used])


def dot(nodes: Sequence[Node]) -> str:
    """The graph in Graphviz (DOT) syntax."""
    has_blocks = any(node.inside for node in nodes)
    rows = ["digraph plan {", f"  rankdir=TB; {'compound=true; ' if has_blocks else ''}node [shape=box];"]
    for node in nodes:
        rows += _dot_rows(node, "  ")
    known = {node.id: node for node in _all(nodes)}
    return "\n".join([*rows, *(_dot_edge(known[before], known[after]) for before, after in _edges(nodes)), "}"])


def _all(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes and those inside them."""
    for node in nodes:
        yield node
        yield from _all(node.inside)


def _mermaid_rows(node: Node, names: Mapping[str, str], indent: str) -> list[str]:
    folded = f"<br/>{_MERMAID.sub(_entity, line(node.folded))}" if node.folded else ""
    label = f'{names[node.id]}["{_MERMAID.sub(_entity, line(f"{node.id}: {node.text}"))}{folded}"]'
    if not node.inside:
        return [f"{indent}{label}{f':::{node.status}' if node.status else ''}"]
    inner = [row for each in node.inside for row in _mermaid_rows(each, names, f"{indent}    ")]
    return [f"{indent}subgraph {label}", *inner, f"{indent}end"]


def _dot_rows(node: Node, indent: str) -> list[str]:
    told = " · ".join(filter(None, (f"{node.id}: {node.text}", node.folded)))
    label = f"label={_dot(told)}"
    if not node.inside:
        return [f"{indent}{_dot(node.id)} [{label}];"]
    inner = [row for each in node.inside for row in _dot_rows(each, f"{indent}  ")]
    return [f"{indent}subgraph {_dot(f'cluster {node.id}')} {{", f"{indent}  {label};", *inner, f"{indent}}}"]


def _dot_edge(before: Node, after: Node) -> str:
    """An edge; between blocks, it is drawn between steps inside them and cut at their borders."""
    ends = [f"ltail={_dot(f'cluster {before.id}')}"] if before.inside else []
    ends += [f"lhead={_dot(f'cluster {after.id}')}"] if after.inside else []
    cut = f" [{', '.join(ends)}]" if ends else ""
    return f"  {_dot(_innermost(before))} -> {_dot(_innermost(after))}{cut};"


def _innermost(node: Node) -> str:
    while node.inside:
        node = node.inside[0]
    return node.id


def _dot(value: str) -> str:
    text = line(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _entity(match: re.Match[str]) -> str:
    return f"#{ord(match[0])};"


def _edges(nodes: Sequence[Node]) -> list[tuple[str, str]]:
    known = {node.id for node in _all(nodes)}
    return [(before, node.id) for node in _all(nodes) for before in node.needs if before in known]
