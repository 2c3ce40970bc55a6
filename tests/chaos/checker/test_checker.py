"""The checker finds what it is there to find: each rule on a record that is good but for one thing."""

from __future__ import annotations

import ast
import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checker.record import Record
from tests.chaos.checker.recovery import percentiles, recovery
from tests.chaos.checker.rules import findings
from tests.test_imports import ROOT

FOLDER = Path(__file__).parent
NAME = "plan-a"
PROMISE: dict[str, Any] = {
    "workflow": NAME,
    "statuses": ["partial"],
    "failed": {"broken": "NO"},
    "listed": {"a.log": ["one", "two"]},
    "any_order": {"b.ledger": ["x", "y"]},
    "at_most": {"c.out": ["c"], "c-doubt.log": ["in doubt"]},
    "either": [["c.out", "c-doubt.log"]],
    "files": {"d.txt": "whole"},
}
FILES = {"a.log": "one\ntwo\n<end>\n", "b.ledger": "y\tkey1\nx\tkey2\n", "c.out": "c\n", "d.txt": "whole"}
SUMMARY = {"status": "partial", "failed": [{"stepId": "broken", "code": "NO", "error": "refused"}]}


def payloads(value: Any) -> dict[str, Any]:
    """A value as Temporal exports it."""
    return {"payloads": [{"data": base64.b64encode(json.dumps(value).encode()).decode()}]}


def event(number: int, kind: str, **attributes: Any) -> dict[str, Any]:
    """An event, `number` seconds after the epoch."""
    key = f"{kind[0].lower()}{kind[1:]}EventAttributes"
    words = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in kind)
    time = f"1970-01-01T00:00:{number:02}Z"
    return {"eventId": str(number), "eventTime": time, "eventType": f"EVENT_TYPE{words}", key: attributes}


def events(summary: Any = SUMMARY) -> list[dict[str, Any]]:
    """A history with one call and an end."""
    failure = {"message": "partial", "applicationFailureInfo": {"details": payloads(summary)}}
    return [
        event(1, "WorkflowExecutionStarted"),
        event(5, "ActivityTaskScheduled", activityId="s"),
        event(9, "ActivityTaskCompleted", scheduledEventId="5"),
        event(10, "WorkflowExecutionFailed", failure=failure),
    ]


class Night:
    """A record on disk that can be changed before it is judged."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workspace = folder, folder / "workspace"
        self.workspace.mkdir()
        (folder / "histories").mkdir()
        (folder / "promises.json").write_text(json.dumps([PROMISE]))
        for name, text in FILES.items():
            (self.workspace / name).write_text(text)
        self.ends(events())

    def ends(self, found: list[dict[str, Any]], **description: Any) -> None:
        """Give the plan another history, or another state."""
        data = {"runs": [{"events": found}], "description": description}
        (self.folder / "histories" / f"{NAME}.json").write_text(json.dumps(data))

    def storm(self, *faults: dict[str, Any]) -> None:
        """Say what was done."""
        (self.folder / "storm.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in faults))

    @property
    def record(self) -> Record:
        """It, as the checker reads it."""
        return Record.read(self.folder, self.workspace)

    @property
    def kinds(self) -> set[str]:
        """Kinds of what is found."""
        return {each.kind for each in findings(self.record)}


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """A good one."""
    return Night(tmp_path)


def written(path: str, text: str) -> Callable[[Night], Any]:
    """A change of a file."""
    return lambda night: (night.workspace / path).write_text(text)


def removed(path: str) -> Callable[[Night], Any]:
    """A file less."""
    return lambda night: (night.workspace / path).unlink()


def ended(summary: Any) -> Callable[[Night], Any]:
    """Another end."""
    return lambda night: night.ends(events(summary))


def left_open(**description: Any) -> Callable[[Night], Any]:
    """No end."""
    return lambda night: night.ends(events()[:-1], **description)


BREACHES: dict[str, tuple[Callable[[Night], Any], set[str]]] = {
    "a line is missing": (written("a.log", "one\n<end>\n"), {"silent"}),
    "a line is there twice": (written("a.log", "one\none\ntwo\n<end>\n"), {"doubled"}),
    "lines are in another order": (written("a.log", "two\none\n<end>\n"), {"lost"}),
    "an entry has been made by two calls": (written("b.ledger", "y\tkey1\nx\tkey2\nx\tkey3\n"), {"doubled"}),
    "a command ran twice": (written("c.out", "c\nc\n"), {"doubled"}),
    "a command neither ran nor is in doubt": (removed("c.out"), {"silent"}),
    "a file is cut off": (written("d.txt", "wh"), {"silent"}),
    "a file is missing": (removed("d.txt"), {"silent"}),
    "a file is left": (written("a.log.tmp", ""), {"left"}),
    "the plan ended otherwise": (ended({**SUMMARY, "status": "failed"}), {"lost"}),
    "a failure has no text": (
        ended({"status": "partial", "failed": [{"stepId": "broken", "code": "NO", "error": ""}]}),
        {"silent"},
    ),
    "a failure is not shown": (ended({"status": "partial", "failed": []}), {"silent"}),
    "a step that failed is called completed": (ended({**SUMMARY, "status": "completed"}), {"lost", "silent"}),
    "the plan is open": (left_open(pendingActivities=[{"activityId": "s"}]), {"lost"}),
    "the plan waits for nothing": (left_open(), {"lost", "silent"}),
    "the server knows no such plan": (
        lambda night: (night.folder / "histories" / f"{NAME}.json").rename(night.folder / "histories/other.json"),
        {"lost"},
    ),
    "a call completed twice": (
        lambda night: night.ends([*events()[:3], event(9, "ActivityTaskCompleted", scheduledEventId="5"), events()[3]]),
        {"doubled"},
    ),
}


def test_a_good_night_has_no_findings(night: Night) -> None:
    assert findings(night.record) == []


@pytest.mark.parametrize("breach", BREACHES)
def test_each_breach_is_found(night: Night, breach: str) -> None:
    change, kinds = BREACHES[breach]
    change(night)
    assert night.kinds == kinds


def test_a_timer_or_a_person_is_a_reason_to_wait(night: Night) -> None:
    night.ends([*events()[:-1], event(11, "TimerStarted")])
    assert night.kinds == {"lost"}
    night.ends(
        [*events()[:-1], event(11, "TimerStarted"), event(12, "TimerFired", startedEventId="11")],
        workflowExecutionInfo={"searchAttributes": {"indexedFields": {"PlanPending": {}}}},
    )
    assert night.kinds == {"lost"}


def test_recovery_is_the_time_from_a_watched_kill_to_the_next_finished_step(night: Night) -> None:
    night.storm(
        {"time": 6.0, "what": "kill", "killed": ["worker0"], "watched": True},
        {"time": 8.5, "what": "kill", "killed": ["worker0"]},
        {"time": 8.8, "what": "cut network"},
    )
    assert recovery(night.record) == {"any plan": [3.0], "same plan": [3.0]}
    assert percentiles([1.0, 2.0, 9.0])["p50"] == 2.0


def test_the_checker_is_a_program_that_says_what_it_found(night: Night) -> None:
    written("a.log", "one\none\ntwo\n<end>\n")(night)
    command = [sys.executable, "-m", "tests.chaos.checker", str(night.folder), str(night.workspace)]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    said = json.loads(done.stdout)
    assert (done.returncode, said["counts"]["doubled"]) == (1, 1)
    assert said["findings"] == ["doubled: plan-a: a.log: 1 times too often: one"]


def test_the_checker_imports_nothing_but_the_standard_library_and_itself() -> None:
    for path in FOLDER.glob("[!t]*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                known = module.startswith("tests.chaos.checker.") or module.split(".")[0] in sys.stdlib_module_names
                assert known, f"{path.name} imports {module}"
