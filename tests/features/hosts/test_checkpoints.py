"""A plan's files go into storage and come back at another host: contents, modes, links, times, and effects."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from plansurvive.activities.workspace.effect_log import Effect, Effects
from plansurvive.activities.workspace.locks import locked, tree_lock
from plansurvive.features.hosts.checkpoints import Checkpoints
from plansurvive.features.hosts.homes import Home, Homes, Record
from plansurvive.features.hosts.packing import PACK_BYTES
from plansurvive.features.hosts.unpacking import rows_of
from plansurvive.plans.errors import ToolError
from plansurvive.plans.hosts.host import Checkpoint
from plansurvive.runtime.base import wait
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore

PLAN = "plan-x"


class Machine:
    """A host with a workspace and a state directory of its own; the storage is that of all."""

    def __init__(self, folder: Path, name: str, most: int = 2**30, packs: int = 400) -> None:
        state, root = folder / name / "state", folder / name / "workspace"
        root.mkdir(parents=True)
        self.storage = folder / "values"
        self.effects = Effects.at(state / "effects")
        self.homes = Homes(root.resolve(), state / "hosts")
        self.checkpoints = Checkpoints(ValueStore(LocalDirectory(self.storage)), self.effects, most, packs)

    def new(self) -> Home:
        home = self.homes.make(PLAN)
        self.checkpoints.open(home)
        home.write(Record(PLAN))
        return home

    async def take(self, home: Home) -> Checkpoint:
        found = await self.checkpoints.take(home)
        assert found is not None
        return found

    async def restored(self, checkpoint: Checkpoint) -> Home:
        home = self.homes.make(PLAN)
        await self.checkpoints.restore(checkpoint, home, PLAN)
        return home

    def objects(self) -> int:
        return sum(1 for path in self.storage.rglob("*") if path.is_file())


@pytest.fixture
def first(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "first")


@pytest.fixture
def second(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "second")


def tree(root: Path) -> dict[str, Any]:
    """All that a checkpoint promises of a directory."""
    found: dict[str, Any] = {}
    for path in sorted(root.rglob("*")):
        status, name = path.lstat(), str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = ("directory", status.st_mode)
        else:
            found[name] = (status.st_mode, status.st_mtime_ns, path.read_bytes())
    return found


async def test_another_host_gets_the_same_files_with_their_modes_links_and_times(
    first: Machine, second: Machine
) -> None:
    home = first.new()
    (home.path / "deep" / "er").mkdir(parents=True)
    (home.path / "empty").mkdir()
    (home.path / "deep" / "er" / "run.sh").write_text("echo\n")
    (home.path / "deep" / "er" / "run.sh").chmod(0o755)
    (home.path / "none").write_bytes(b"")
    (home.path / "big").write_bytes(os.urandom(2 * PACK_BYTES + 5))
    (home.path / "up").symlink_to("deep/er/run.sh")
    (home.path / "out").symlink_to("/etc/passwd")
    (home.path / os.fsdecode(b"not-\xff-text")).write_text("x")
    os.utime(home.path / "deep" / "er" / "run.sh", ns=(1, 10**18))
    sealed = home.path / "sealed"
    sealed.mkdir()
    (sealed / "in").write_text("in")
    sealed.chmod(0o500)
    taken = await first.take(home)
    there = await second.restored(taken)
    assert tree(there.path) == tree(home.path)
    assert there.path != home.path


async def test_what_has_not_changed_is_neither_stored_nor_read_again(first: Machine) -> None:
    home = first.new()
    for number in range(300):
        (home.path / f"{number}.txt").write_text(str(number))
    one = await first.take(home)
    objects = first.objects()
    assert objects <= 4, "many small files are one pack, a list and a root"
    assert await first.take(home) == one
    assert first.objects() == objects
    (home.path / "7.txt").write_text("changed")
    (home.path / "moved").write_bytes((home.path / "8.txt").read_bytes())
    two = await first.take(home)
    assert two.number == 2
    assert first.objects() == objects + 3, "the new content, a list and a root; not the content that was there before"


async def test_a_checkpoint_of_the_second_host_builds_on_what_the_first_has_stored(
    first: Machine, second: Machine
) -> None:
    home = first.new()
    (home.path / "big").write_bytes(os.urandom(3 * PACK_BYTES))
    there = await second.restored(await first.take(home))
    before = second.objects()
    (there.path / "new").write_text("new")
    taken = await second.take(there)
    assert (taken.number, taken.token) == (1, there.token)
    assert second.objects() == before + 3
    assert tree((await first.restored(taken)).path) == tree(there.path)


async def test_many_changes_of_small_files_do_not_leave_a_checkpoint_in_ever_more_packs(
    tmp_path: Path, second: Machine
) -> None:
    first = Machine(tmp_path, "first", packs=5)
    home = first.new()
    for number in range(20):
        (home.path / f"{number}.txt").write_text(str(number))
        taken = await first.take(home)
    assert len(home.read().packs) <= 6
    assert tree((await second.restored(taken)).path) == tree(home.path)


async def test_what_plansignore_names_is_left_out_and_sockets_are(first: Machine, second: Machine) -> None:
    home = first.new()
    (home.path / ".plansignore").write_text("cache/\n*.tmp\n!keep.tmp\n")
    for name in ("cache/a", "b.tmp", "keep.tmp", "sub/c.tmp"):
        (home.path / name).parent.mkdir(exist_ok=True)
        (home.path / name).write_text(name)
    os.mkfifo(home.path / "pipe")
    there = await second.restored(await first.take(home))
    assert {*tree(there.path)} == {".plansignore", "keep.tmp", "sub"}


async def test_too_much_is_refused_with_what_to_do(tmp_path: Path) -> None:
    small = Machine(tmp_path, "small", most=1_000)
    home = small.new()
    (home.path / "big").write_bytes(b"x" * 1_001)
    with pytest.raises(ToolError, match=r"\.plansignore") as caught:
        await small.take(home)
    assert caught.value.code == "CHECKPOINT_TOO_LARGE"
    assert not caught.value.retryable


async def test_effects_move_with_the_files_they_belong_to(first: Machine, second: Machine) -> None:
    home = first.new()
    (home.path / "a").write_text("a")
    done = Effect(f"{PLAN}/run/a", "write", str(home.path), "a", "", "", "hash", 1, {"bytes": 1}, "done")
    other = Effect("plan-y/run/a", "write", str(home.path), "a", after="hash", state="done")
    begun = Effect(f"{PLAN}/run/once", "call")
    for each in (done, other, begun):
        first.effects.log.begin(each)
    there = await second.restored(await first.take(home))
    found = second.effects.log.find(done.key, "a")
    assert found is not None
    assert (found.workspace, found.value, found.state) == (str(there.path), {"bytes": 1}, "done")
    claim = second.effects.log.find(begun.key)
    assert claim is not None
    assert claim.state == "open", "the outcome of a call that had begun stays unknown at the next host"
    assert second.effects.log.find(other.key, "a") is None


async def test_no_effect_happens_while_a_checkpoint_is_taken(first: Machine) -> None:
    home = first.new()
    with wait.locked(tree_lock(first.effects.locks, str(home.path)), 1):
        with pytest.raises(ToolError) as caught, locked(first.effects.locks, str(home.path), "a", lambda: True):
            raise AssertionError("the change began")
        assert caught.value.code == "FILE_BUSY"
        with locked(first.effects.locks, "/elsewhere", "a", lambda: True):
            pass
    place = first.effects.locks, str(home.path)
    with locked(*place, "a", lambda: True), locked(*place, "b", lambda: True):
        pass


def test_a_directory_that_a_plan_left_is_removed_when_it_comes_back_and_never_used_again(first: Machine) -> None:
    left, other = first.new(), first.homes.make("plan-other")
    other.write(Record("plan-other"))
    back = first.new()
    assert back.path != left.path
    first.homes.remove_others(PLAN, back)
    assert not left.path.exists()
    assert first.homes.of(str(left.path)) is None
    assert first.homes.of(str(back.path)) == back
    assert first.homes.of(str(other.path)) == other
    assert first.homes.of(str(back.path / "..")) is None


FILE = ["file", 0o644, 0, 0, "x", []]


@pytest.mark.parametrize(
    "rows",
    [
        {"../out": FILE},
        {"/etc/x": FILE},
        {"a/b": FILE},
        {"a": ["link", 0, 0, 0, "/etc", []], "a/b": FILE},
        {"": FILE},
        {"a//b": FILE},
        {".": FILE},
        {"a": ["device", 0, 0, 0, "", []]},
        {"a": [1]},
        {"a": "file"},
        [],
    ],
)
def test_a_checkpoint_never_leads_out_of_the_directory_it_is_restored_into(rows: Any) -> None:
    with pytest.raises(ToolError) as caught:
        rows_of(rows)
    assert caught.value.code == "CHECKPOINT_FAILED"


async def test_effects_of_what_works_for_the_plan_are_in_its_checkpoints_from_then_on(
    first: Machine, second: Machine
) -> None:
    home = first.new()
    (home.path / "a").write_text("a")
    done = Effect("agent-x/run/a", "write", str(home.path), "a", "", "", "hash", 1, {"bytes": 1}, "done")
    begun = Effect("agent-x/run/once", "call")
    for each in (done, begun):
        first.effects.log.begin(each)
    assert await first.checkpoints.take(home, "agent-x")
    (home.path / "b").write_text("b")
    there = await second.restored(await first.take(home))
    found = second.effects.log.find(done.key, "a")
    assert found is not None
    assert (found.workspace, found.value) == (str(there.path), {"bytes": 1})
    assert second.effects.log.find(begun.key) is not None
    (there.path / "c").write_text("c")
    third = Machine(first.homes.root.parents[1], "third")
    await third.restored(await second.take(there))
    assert third.effects.log.find(done.key, "a") is not None, "it goes on with every move"


async def test_a_record_without_others_is_as_it_was(first: Machine) -> None:
    """Workers of before there could be any must be able to read it."""
    home = first.new()
    assert "children" not in json.loads(home.file.read_text())
    assert await first.checkpoints.take(home, "agent-x") is None
    assert home.read().children == []
