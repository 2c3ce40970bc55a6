"""What has happened to a big plan, as events read off its brief view: one question instead of forty, and one answer.

They are those of which a big plan's lines tell: how its steps ended, its log, and the questions that are open. What
runs or is ready is among them, so that a question it asks later is known to be one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from client.runs import Event

_TIMES = {"completed": "endedAt", "failed": "endedAt", "skipped": "endedAt", "running": "startedAt"}


def past(view: Mapping[str, Any]) -> list[Event]:
    """The events in the order in which they happened."""
    happened = [*_of_steps(view), *_questions(view), *_of_log(view)]
    happened.sort(key=lambda event: int(event["seq"]))
    return [Event.model_validate(event | {"taskId": view["id"]}) for event in happened]


def _of_steps(view: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for step in view["steps"]:
        if step["seq"] and (step["status"] in _TIMES or step["status"] == "ready"):
            time = step.get(_TIMES.get(step["status"]), "")
            event = {"seq": step["seq"], "time": time, "stepId": step["id"], "status": step["status"]}
            yield event | ({"progress": 100, "result": step["result"]} if "result" in step else {})


def _questions(view: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    numbers = {step["id"]: step["seq"] for step in view["steps"] if step.get("awaiting")}
    for item in view["pending"]:
        name = item["stepId"]
        yield {"seq": numbers[name], "time": item["since"], "stepId": name, "status": "ready"}


def _of_log(view: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in view["log"]:
        told = {name: entry[name] for name in ("time", "kind", "text", "code", "subject") if name in entry}
        head = {"seq": entry["seq"], "time": entry["time"], "stepId": entry.get("stepId", "")}
        yield head | {"status": entry["status"], "logs": [told]}
