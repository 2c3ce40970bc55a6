"""Two people approve one call by terminal, each with a key of their own, in a window of 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.policy.policy_file import FILE
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.client.cli.command import plan, written
from tests.kit.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.sampled, pytest.mark.uses("policy", "signing")]

RULE = """
[[rule]]
name = "release by two"
tool = "write_file"
decide = "ask"
by = ["ann", "bob"]
count = 2
not_author = true
[people]
"""
STEP = {"id": "notes", "tool": "write_file", "args": {"path": "notes.md", "content": "# 4.2\n"}}


async def test_one_of_two_is_shown_to_both_and_the_second_has_the_call_made(
    environ: dict[str, str], temporal_client: Client, settings: Settings, tmp_path: Path, workspace: Path
) -> None:
    people = ("ann", "bob", "cara")
    desks = {name: environ | {"PLANS_STATE_DIR": str(tmp_path / name), "COLUMNS": "80"} for name in people}
    made = [(await plan(desks[name], "keys", "person", name)).out for name in people]
    lines = [row for out in made for row in out.splitlines() if "ed25519:" in row]
    assert [row.split(" = ")[0].strip() for row in lines] == list(people)
    (settings.state_dir / FILE).write_text(RULE + "\n".join(lines) + "\n")
    file, seen = written(tmp_path / "plan.json", {"title": "Release 4.2", "steps": [STEP]}), list[str]()

    async def says(name: str, *arguments: str, code: int = 0) -> str:
        ended = await plan(desks[name], *arguments)
        seen.append(f"{name}$ plan {' '.join(arguments)}\n{ended.out}{ended.err}")
        assert ended.code == code, ended
        return ended.out + ended.err

    async with build(temporal_client, settings, load_tools(()), indexed=True):
        await says("cara", "start", file, "--id", "release")

        async def asks() -> bool:
            return "ann and bob must approve" in " ".join((await plan(desks["bob"], "pending", "release")).out.split())

        await until(asks, "the rule asks for two")
        assert "1 of 2" in await says("ann", "approve", "release", "notes")
        assert "cara is an author of the call" in await says("cara", "approve", "release", "notes", code=2)
        assert "ALREADY_DECIDED" in await says("ann", "approve", "release", "notes", code=2)
        shown = " ".join((await says("bob", "pending", "release")).split())
        assert "1 of 2, by ann at" in shown
        assert "bob must approve" in shown
        assert not (workspace / "notes.md").exists()
        await says("bob", "approve", "release", "notes")
        await says("bob", "watch", "release")
        assert "approved by ann, bob" in " ".join((await says("cara", "show", "release")).split())
    (tmp_path / "seen.txt").write_text("\n".join(seen))  # to be looked at
    assert (workspace / "notes.md").read_text() == "# 4.2\n"
