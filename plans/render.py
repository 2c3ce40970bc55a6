"""A run as text: the display of seed 000, Markdown for the Temporal UI, the summary, and graphs.

Everything but `details` works on the JSON view, so that clients render what they were sent. Texts of plans and tools
are shown with control and bidirectional characters escaped: what a step wrote cannot redraw the reader's screen
(FAULTS, T18).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from plans.folding import chosen, folded
from plans.run import PlanStatus, Run, Status
from plans.standing import Standing
from plans.task_progress import MARKS as TASK_MARKS
from plans.task_progress import position, tasks_of

MARKS = {"completed": "✓", "failed": "✗", "running": ">", "skipped": "-", "ready": "?", "blocked": " ", "pending": " "}
"""Marks of the display; a ready step that waits for nobody has none."""
DETAIL_STEPS = 40
"""Steps listed in the current details; of longer plans those that move are shown."""
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_MERMAID = re.compile(r'["#<>&;%`]')
"""What means something to Mermaid even inside quotes: entities, HTML, `%%{...}%%` directives."""
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")


def safe(text: str) -> str:
    """A text with control and direction characters written out, so that it shows as what it is."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def line(text: str) -> str:
    """A text on one line, safe to show."""
    return safe(" ".join(text.split("\n")).replace("\t", " "))


def text(view: Mapping[str, Any], limit: int | None = None) -> str:
    """The display of seed 000: title, progress, each step with mark, notes, tools and files.

    With a limit at most so many steps, those that move; the others are told in one line.
    """
    steps = view["steps"]
    done = sum(step["status"] in ("completed", "skipped") for step in steps)
    percent = 100 * done / len(steps) if steps else 0.0
    head = [
        f"Plan: {line(view.get('title') or view['id'])}",
        "=" * 40,
        f"Progress: {done}/{len(steps)} ({percent:.1f}%)",
        "",
        "Steps:",
    ]
    positions = {step["id"]: index for index, step in enumerate(steps)}
    shown = range(len(steps)) if limit is None else chosen(steps, limit)
    rows = [row for index in shown for row in _step_rows(view, steps[index], positions)]
    return "\n".join(head + rows + _hidden(steps, set(shown)))


def _hidden(steps: Sequence[Mapping[str, Any]], shown: Set[int]) -> list[str]:
    """The line about the steps that are not shown, if there are any."""
    hidden = [step for index, step in enumerate(steps) if index not in shown]
    return [f"  {folded(hidden)}"] if hidden else []


def _step_rows(view: Mapping[str, Any], step: Mapping[str, Any], positions: Mapping[str, int]) -> list[str]:
    index = positions[step["id"]]
    mark = MARKS[step["status"]] if step["status"] != "ready" or step.get("awaiting") else " "
    row = f"  {index}: [{mark}] {line(step['description'] or step['id'])}"
    calls = view.get("step_tool_history", {}).get(str(index), [])
    if not calls and step["status"] in ("pending", "blocked", "ready"):
        needs = sorted({positions[name] for name in step.get("needs", step["dependsOn"]) if name in positions})
        rows = [row + (f" (depends on: {needs})" if needs else "")]
        return rows + ([f"      Notes: {line(_notes(step))}"] if _notes(step) else [])
    files = view.get("step_files", {}).get(str(index), [])
    return [
        row,
        *(f"      [{TASK_MARKS[task['status']]}] {line(task['objective'])}" for task in step.get("tasks", [])),
        f"      Notes: {line(_notes(step)) or '-'}",
        f"      Tools: {_tools(calls)}",
        f"      Files: {', '.join(map(line, files)) or '-'}",
    ]


def _notes(step: Mapping[str, Any]) -> str:
    error = (step.get("result") or {}).get("error")
    if step.get("awaiting"):
        return f"waits for {step['awaiting']}"
    return str(error or step.get("notes") or step.get("reason") or "")


def _tools(calls: Iterable[Mapping[str, Any]]) -> str:
    found: dict[str, int] = {}
    for call in calls:
        found[call["tool"]] = found.get(call["tool"], 0) + 1
    return ", ".join(f"{name} ({count} call{'s' * (count != 1)})" for name, count in found.items()) or "-"


def summary_of(view: Mapping[str, Any]) -> dict[str, Any]:
    """The end of a plan in numbers (REQUIREMENTS B9). `duration` is in seconds."""
    steps = view["steps"]
    files = _files_left(view)
    return {
        "planId": view["id"],
        "title": view.get("title", ""),
        "status": view["status"],
        "counts": view["counts"],
        "startedAt": view.get("startedAt"),
        "endedAt": view.get("endedAt"),
        "duration": view.get("duration", 0.0),
        "filesWritten": list(dict.fromkeys(files))[:1_000],
        "tokens": view.get("tokens", {}),
        "stopped": view.get("stopped", ""),
        "failed": [_failure(step) for step in steps if step["status"] == "failed"][:100],
        "skipped": [_reason(step) for step in steps if step["status"] == "skipped"][:100],
        "blocked": [_reason(step) for step in steps if step["status"] == "blocked"][:100],
    }


def _files_left(view: Mapping[str, Any]) -> list[str]:
    """The files the steps wrote, without those that a later step deleted."""
    deleted = {path: str(step.get("endedAt")) for step in view["steps"] for path in step.get("deleted", [])}
    return [
        path
        for index, paths in view.get("step_files", {}).items()
        for path in paths
        if path not in deleted or str(view["steps"][int(index)].get("endedAt")) > deleted[path]
    ]


def _failure(step: Mapping[str, Any]) -> dict[str, Any]:
    result = step.get("result") or {}
    return {"stepId": step["id"], "code": result.get("code"), "error": str(result.get("error"))[:500]}


def _reason(step: Mapping[str, Any]) -> dict[str, Any]:
    return {"stepId": step["id"], "reason": str(step.get("reason", ""))[:200]}


def summary_markdown(summary: Mapping[str, Any], view: Mapping[str, Any] | None = None) -> str:
    """SUMMARY.md: what came of the plan, for people."""
    counts = ", ".join(f"{count} {name}" for name, count in summary["counts"].items() if name != "total")
    rows = [
        f"# {md(summary['title'] or summary['planId'])}",
        "",
        f"- Plan: `{summary['planId']}`",
        f"- Status: {summary['status']}",
        f"- Steps: {counts} (of {summary['counts']['total']})",
        f"- Duration: {summary['duration']:.1f} s",
        f"- Started: {summary['startedAt'] or '-'}",
        f"- Ended: {summary['endedAt'] or '-'}",
    ]
    rows += _section("Failed", [f"`{item['stepId']}`: {md(item['error'])}" for item in summary["failed"]])
    rows += _section("Skipped", [f"`{item['stepId']}`: {md(item['reason'])}" for item in summary["skipped"]])
    rows += _section("Blocked", [f"`{item['stepId']}`: {md(item['reason'])}" for item in summary["blocked"]])
    rows += _section("Files written", [code(path) for path in summary["filesWritten"]])
    if summary["tokens"]:
        rows += _section(
            "Tokens",
            [f"{name}: {count}" for name, count in summary["tokens"].items() if count and not isinstance(count, dict)],
        )
    if view is not None and len(view["steps"]) <= 500:
        rows += ["", "## Steps", "", "```", text(view), "```"]
    return "\n".join(rows) + "\n"


def _section(title: str, items: list[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {item}" for item in items)] if items else []


def markdown(view: Mapping[str, Any]) -> str:
    """A plan as a Markdown list, for the static details of a workflow."""
    rows = [f"**{md(view.get('title') or view.get('id') or 'plan')}**", ""]
    rows += [
        f"{index + 1}. `{step['id']}` {md(step.get('description') or '')} — {md(step['tool'])}"
        for index, step in enumerate(view["steps"][:200])
    ]
    return "\n".join([*rows, *_rest(len(view["steps"]) - 200), *_END])


_END = ["", "---", "", "_end_"]
"""The Temporal UI clips the last block of a text (TEMPORAL.md 5): let it be this one."""


def details(run: Run, schedule: Standing) -> str:
    """The plan as it stands, for the workflow's current details: bounded work, whatever the plan's size."""
    counts = ", ".join(f"{schedule.counts[status]} {status.value}" for status in Status if schedule.counts[status])
    rows = [f"**{md(run.plan.title or run.plan.id or '')}** · {run.status.value} · {counts}", ""]
    if run.stopped:
        rows += [f"Stopped: {md(run.stopped)}", ""]
    if run.problems:
        rows += [f"To be mended before it can begin: {md(run.problems[0].text[:300])}", ""]
    if schedule.asking and run.status is not PlanStatus.REVIEW:
        rows += ["Waiting for approval: " + ", ".join(f"`{name}`" for name in list(schedule.asking)[:10]), ""]
    shown = run.plan.steps
    if len(shown) > DETAIL_STEPS:
        names = schedule.moving(DETAIL_STEPS)
        shown = [schedule.step(name) for name in names]
    for step in shown:
        state = run.steps[step.id]
        note = state.reason or (state.result.error if state.result and state.result.error else "")
        rows.append(
            f"- [{MARKS[state.status.value]}] `{step.id}` {md(step.description or step.tool)} · {state.status.value}"
            + (f" · waits for {state.awaiting}" if state.awaiting else "")
            + (f" · {md(position({'tasks': tasks_of(state)})[:200])}" if state.tasks else "")
            + (f" · {md(note[:200])}" if note else "")
        )
    return "\n".join([*rows, *_rest(len(run.plan.steps) - len(shown)), *_END])


def _rest(count: int) -> list[str]:
    return ["", f"… and {count} more"] if count > 0 else []


def md(value: str) -> str:
    """A text inside Markdown: on one line, safe, its marks shown as they are."""
    return _MARKDOWN.sub(r"\\\1", line(str(value)))


def code(value: str) -> str:
    """A name as code inside Markdown; one that holds a backtick, which would end the code, as text."""
    return md(value) if "`" in value else f"`{line(value)}`"


def mermaid(view: Mapping[str, Any]) -> str:
    """The graph for Mermaid; colours by status when there is one."""
    rows = ["flowchart TD"]
    names = {step["id"]: f"s{index}" for index, step in enumerate(view["steps"])}
    for step in view["steps"]:
        label = line(f"{step['id']}: {step.get('description') or step['tool']}")
        status = f":::{step['status']}" if "status" in step else ""
        rows.append(f'    {names[step["id"]]}["{_MERMAID.sub(_entity, label)}"]{status}')
    for before, after in _edges(view):
        rows.append(f"    {names[before]} --> {names[after]}")
    colours = {"completed": "#bfb", "failed": "#fbb", "running": "#bdf", "skipped": "#ddd", "blocked": "#fed"}
    used = {step.get("status") for step in view["steps"]}
    return "\n".join(rows + [f"    classDef {name} fill:{colour}" for name, colour in colours.items() if name in used])


def dot(view: Mapping[str, Any]) -> str:
    """The graph for Graphviz."""
    rows = ["digraph plan {", "  rankdir=TB; node [shape=box];"]
    for step in view["steps"]:
        label = f"{step['id']}: {step.get('description') or step['tool']}"
        rows.append(f"  {_dot(step['id'])} [label={_dot(label)}];")
    return "\n".join([*rows, *(f"  {_dot(before)} -> {_dot(after)};" for before, after in _edges(view)), "}"])


def _dot(value: str) -> str:
    text = line(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _entity(match: re.Match[str]) -> str:
    return f"#{ord(match[0])};"


def _edges(view: Mapping[str, Any]) -> list[tuple[str, str]]:
    known = {step["id"] for step in view["steps"]}
    return [(before, step["id"]) for step in view["steps"] for before in step["needs"] if before in known]
