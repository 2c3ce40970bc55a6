"""`plan add`, `remove`, `skip` and `edit` of steps inside the items of a loop that runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from tests.client.cli.command import Ended, plan, written
from tests.kit.waiting import until

Environ = dict[str, str]


def wrote(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "tool": "write_file", "args": {"path": f"{name}-{{{{item}}}}.txt", "content": text}} | more


LOOP: dict[str, Any] = {
    "id": "each", "forEach": {"items": ["a", "b"], "key": "@"},
    "steps": [wrote("first", "1", requiresApproval=True), wrote("then", "2", dependsOn=["first"]),
              wrote("last", "3", dependsOn=["first"])],
}  # fmt: skip


def code_of(ended: Ended) -> str:
    """The code of an error."""
    return str(ended.json["error"]["code"])


@pytest.mark.slow
async def test_steps_are_added_removed_and_skipped_in_single_items(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    file = written(tmp_path / "plan.json", {"id": "inside", "steps": [LOOP]})
    await plan(environ, "start", file)

    async def asked() -> bool:
        return len((await plan(environ, "pending", "inside", "--json")).json) == 2

    await until(asked, "both items ask")
    more = written(tmp_path / "more.json", wrote("more", "4", dependsOn=["then"]))
    assert (await plan(environ, "edit", "inside", "--set", "each.last.args.content=five")).code == 0
    added = await plan(environ, "add", "inside", more, "--after", "each[a].then", "--json")
    assert (added.code, added.json["version"]) == (0, 3)
    assert (await plan(environ, "remove", "inside", "each[b].last")).code == 0
    assert (await plan(environ, "skip", "inside", "each[b].then", "--comment", "not for b")).code == 0
    assert code_of(await plan(environ, "remove", "inside", "each[c].last", "--json")) == "UNKNOWN_STEP"
    assert code_of(await plan(environ, "skip", "inside", "each.then", "--json")) == "TOO_EARLY"
    assert code_of(await plan(environ, "add", "inside", more, "--after", "each[a]", "--json")) == "NOT_A_BLOCK"
    assert (await plan(environ, "approve", "inside", "each[*].first")).code == 0
    await plan(environ, "watch", "inside")
    found = {path.name: path.read_text() for path in workspace.glob("*.txt")}
    assert found == {"first-a.txt": "1", "first-b.txt": "1", "then-a.txt": "2", "more-a.txt": "4", "last-a.txt": "five"}
    shown = json.loads((await plan(environ, "show", "inside", "each[b].then", "--json")).out)
    assert "not for b" in json.dumps(shown)
