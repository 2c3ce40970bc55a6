"""Tasks that become one step of a plan: call, run, wait, listen, emit, raise.

https://github.com/serverlessworkflow/specification/blob/main/dsl-reference.md#task
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from plansurvive.apps.importers.common.expressions import Const, Listed, Path
from plansurvive.apps.importers.common.expressions import text_of as to_text
from plansurvive.apps.importers.common.names import id_of
from plansurvive.apps.importers.common.report import Location
from plansurvive.apps.importers.serverless.calls import call_of
from plansurvive.apps.importers.serverless.leaves import ASK, Leaf, asks
from plansurvive.apps.importers.serverless.processes import run_of
from plansurvive.apps.importers.serverless.state import State

_EVENT = re.compile(r"[A-Za-z0-9_.:/-]{1,200}")
_DURATION = re.compile(
    r"P(?:(?P<days>\d+(?:\.\d+)?)D)?(?:T(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_UNITS = {"days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0, "milliseconds": 0.001}


def leaf_of(name: str, task: Mapping[str, Any], state: State, functions: Mapping[str, Any], place: Location) -> Leaf:
    """The step of a task. What has no counterpart becomes a question to a person, and is reported."""
    if "call" in task:
        return call_of(name, task, state, functions, place)
    if "run" in task:
        return run_of(name, task["run"] if isinstance(task["run"], dict) else {}, state, (*place, "run"))
    if "wait" in task:
        waits = seconds_of(task["wait"])
        if waits is None:
            state.report.loss((*place, "wait"), "a duration that is computed", "set args.seconds")
        return Leaf({"id": name, "tool": "sleep", "args": {"seconds": waits or 0}}, state.dot)
    if "listen" in task:
        return _listen(name, task["listen"] if isinstance(task["listen"], dict) else {}, state, (*place, "listen"))
    if "raise" in task:
        return _raise(name, task["raise"], state, (*place, "raise"))
    what = "emit" if "emit" in task else "/".join(map(str, task))[:100] or "an empty task"
    state.report.loss(place, f"the task {what}: a person is asked instead", ASK)
    given = task.get("emit", task)
    return Leaf(asks(name, f"Do this by hand, then answer done: {what}", given, state, place), state.dot)


def seconds_of(duration: Any) -> float | None:
    """A duration of ISO 8601 or of units, in seconds; None if it is neither."""
    if isinstance(duration, str):
        found = _DURATION.fullmatch(duration.strip())
        parts: Mapping[str, Any] = (
            {name: float(each) for name, each in found.groupdict().items() if each} if found else {}
        )
    else:
        parts = duration if isinstance(duration, dict) else {}
    known = all(name in _UNITS and isinstance(each, int | float) for name, each in parts.items())
    if not parts or not known:
        return None
    total = sum(_UNITS[name] * each for name, each in parts.items())
    return int(total) if total == int(total) else total


def _listen(name: str, given: Mapping[str, Any], state: State, place: Location) -> Leaf:
    to = given.get("to") if isinstance(given.get("to"), dict) else {}
    assert isinstance(to, dict)  # noqa: S101 - for mypy
    place = (*place, "to")
    kind = next((each for each in ("one", "all", "any") if to.get(each)), "any")
    filters = to.get(kind)
    several = [each for each in (filters if isinstance(filters, list) else [filters]) if isinstance(each, dict)]
    if to.get("until"):
        state.report.loss((*place, "until"), "listening until a condition holds: one event is awaited", "use repeat")
    if kind == "any" and len(several) != 1:
        state.report.loss((*place, kind), "any of several events: the first of them is awaited", "send one event name")
    if given.get("read") not in (None, "data"):
        state.report.loss((*place[:-1], "read"), "the envelope of an event; its data is read", "send what is needed")
    if kind == "all" and len(several) > 1:
        waits = [
            _wait(f"{name}_{number + 1}", each, state, (*place, kind, number)) for number, each in enumerate(several)
        ]
        names = [step["id"] for step in waits]
        block = {"id": name, "steps": waits, "output": f"[{', '.join(names)}]"}
        return Leaf(block, Path(name))
    step = _wait(name, several[0] if several else {}, state, (*place, kind))
    return Leaf(step, Listed((Path(name),)))


def _wait(name: str, given: Mapping[str, Any], state: State, place: Location) -> dict[str, Any]:
    wanted = given.get("with") if isinstance(given.get("with"), dict) else {}
    assert isinstance(wanted, dict)  # noqa: S101 - for mypy
    kind = str(wanted.get("type") or "")
    event = kind if _EVENT.fullmatch(kind) else id_of(kind, "event")
    if event != kind:
        state.report.loss((*place, "with", "type"), f"the event {kind or 'of any type'}", f"send it as {event}")
    args: dict[str, Any] = {"event": event}
    if isinstance(wanted.get("data"), str):
        match = State(state.report, Path("@"), loose=True).condition(wanted["data"], (*place, "with", "data"))
        args |= {"match": match} if match else {}
    for key in ("source", "subject", "id", "time"):
        if key in wanted:
            state.report.loss((*place, "with", key), f"an event chosen by its {key}", "choose by `match` over its data")
    if given.get("correlate"):
        state.report.loss((*place, "correlate"), "correlation of events", "choose by `match` over its data")
    return {"id": name, "tool": "wait_for", "args": args}


def _raise(name: str, given: Any, state: State, place: Location) -> Leaf:
    error = given.get("error") if isinstance(given, dict) else None
    detail = error if isinstance(error, dict) else {"title": str(error)}
    title = " ".join(str(detail[key]) for key in ("title", "detail") if isinstance(detail.get(key), str)) or "raised"
    state.report.note(place, "the step fails as COMMAND_FAILED; an error of another type cannot be raised")
    command = f"printf '%s\\n' {shlex.quote(title)} >&2; exit 1"
    step = {"id": name, "tool": "run_command", "args": {"command": to_text(Const(command))}, "retry": {"attempts": 1}}
    return Leaf(step, state.dot)
