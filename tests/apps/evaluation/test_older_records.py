"""Records of older versions: this one plays their agents, and makes the same calls with the same end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory

from plansurvive.apps.evaluation.playing import Play
from plansurvive.apps.evaluation.record import Reader
from plansurvive.runtime.storage import LocalDirectory, converter

HISTORIES = Path(__file__).parent.parent.parent / "replay" / "histories"
NAMES = sorted(
    path.name.partition(".")[0] for path in HISTORIES.glob("*.1.json") if '"AgentWorkflow"' in path.read_text()[:5_000]
)


@pytest.mark.parametrize("name", NAMES)
async def test_an_agent_recorded_by_an_older_version_is_played(name: str, tmp_path: Path) -> None:
    plain = converter(LocalDirectory(tmp_path))
    paths = sorted(HISTORIES.glob(f"{name}.*.json"))
    reader = Reader(plain, json.loads(paths[0].read_text())["workflowId"])
    for path in paths:
        data = json.loads(path.read_text())
        for event in WorkflowHistory.from_json(data.pop("workflowId"), data).events:
            await reader.take(event)
    assert reader.record is not None
    found = await Play(plain, reader.record).check()
    assert not found.error
    assert set(found.check.differs) <= {"prompts"}, found.check.changes  # older requests have fields of their own
    assert found.check.now.requests > 0


def test_there_are_such_records() -> None:
    assert {"agent-simple", "agent-continued", "agent-interrupted", "agent-resumed"} <= set(NAMES)
