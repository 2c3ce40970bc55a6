"""With keys, what is kept of agents and of ended plans in the state directory tells nothing; and it is still found."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from plansurvive.activities.lifecycle.record_end import SummaryWriter
from plansurvive.features.agents.history_file import run_summary
from plansurvive.features.agents.history_store import AgentHistory, AgentTracker
from plansurvive.features.keys.ring import Key
from plansurvive.features.keys.sealing import Encrypting
from plansurvive.plans.activity_io import AgentEvent, SummaryFile
from plansurvive.runtime.errors import KeyMissing
from tests.client.cli.command import plan
from tests.features.keys.rings import key, live, ring_file
from tests.plans.building import NOW

CANARY = "canary-of-an-agent"
FIRST = AgentEvent(kind="spawned", agent_id="agent-one", time=NOW, task_group=CANARY)


def rest(path: Path, *keys: Key) -> Encrypting:
    return Encrypting(live(ring_file(path, *keys)))


def everything(directory: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file())


def test_the_history_of_agents_is_encrypted_and_read_again(tmp_path: Path, state_dir: Path) -> None:
    store = AgentHistory(state_dir, sealing=rest(tmp_path / "ring", key()))
    store.record(FIRST)
    assert CANARY in store.read().history.model_dump_json()
    assert CANARY.encode() not in everything(state_dir)


def test_what_was_written_before_there_were_keys_is_read_and_encrypted_with_the_next_change(
    tmp_path: Path, state_dir: Path
) -> None:
    AgentHistory(state_dir).record(FIRST)
    assert CANARY.encode() in everything(state_dir), "the control: without keys it is found"
    store = AgentHistory(state_dir, sealing=rest(tmp_path / "ring", key()))
    store.record(FIRST.model_copy(update={"agent_id": "agent-two", "time": NOW + timedelta(minutes=1)}))
    assert [entry.agent_id for entry in store.read().history.entries] == ["agent-one", "agent-two"]
    assert CANARY.encode() not in everything(state_dir)


def test_a_history_whose_key_is_missing_is_neither_damaged_nor_replaced(tmp_path: Path, state_dir: Path) -> None:
    AgentHistory(state_dir, sealing=rest(tmp_path / "ring", key())).record(FIRST)
    before = everything(state_dir)
    store = AgentHistory(state_dir, sealing=rest(tmp_path / "other", key()))
    with pytest.raises(KeyMissing):
        store.read()
    assert AgentTracker(store).track_agent(FIRST).startswith("KEY_MISSING: ")
    assert everything(state_dir) == before


def test_a_changed_history_is_set_aside_and_rebuilt_from_encrypted_summaries(tmp_path: Path, state_dir: Path) -> None:
    secret = rest(tmp_path / "ring", key())
    store = AgentHistory(state_dir, sealing=secret)
    [entry] = store.record(FIRST).history.entries
    done = entry.model_copy(update={"status": "completed"})
    SummaryWriter(state_dir, secret).write_summary(
        SummaryFile(plan_id=entry.agent_id, markdown=run_summary(done, "completed", CANARY))
    )
    text = store.path.read_text()
    store.path.write_text(text[:-8] + ("AAAA" if text[-8:-4] != "AAAA" else "BBBB") + text[-4:])
    update = store.read()
    assert "was changed" in update.warning
    assert [each.agent_id for each in update.history.entries] == ["agent-one"]
    assert CANARY.encode() not in everything(state_dir)


async def test_a_summary_is_printed_by_who_has_the_key(tmp_path: Path, state_dir: Path) -> None:
    ring = ring_file(tmp_path / "ring", key())
    writer = SummaryWriter(state_dir, Encrypting(live(ring)))
    path = writer.write_summary(SummaryFile(plan_id="p", markdown=f"# {CANARY}"))
    assert CANARY not in Path(path).read_text()
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state_dir)}
    assert (await plan(environ | {"PLANS_KEYS": str(ring)}, "keys", "read", path)).out.strip() == f"# {CANARY}"
    assert "KEY_MISSING" in (await plan(environ, "keys", "read", path)).err
    assert (await plan(environ, "keys", "read", str(tmp_path / "none"))).code == 2
