"""Results of earlier runs in one worker: taken exactly, or the tool runs; files re-created by the rules of edits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.activities.feature import Attempt, Layer
from plansurvive.activities.provenance.watcher import Watcher
from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.features.cache.in_worker import Results
from plansurvive.features.cache.model import CacheNote, CacheOrder
from plansurvive.features.cache.store import ResultStore
from plansurvive.features.keys.sealing import Encrypting
from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import stamp_of
from tests.activities.attempts import Attempts
from tests.features.keys.rings import key, live, ring_file


def joining(calls: list[str], version: str) -> Tool:
    """A tool that joins two files into a third, and lists its calls."""

    @tool(name="join", effect="keyed", cache=True, version=version)
    def join(first: str, second: str, target: str, context: ToolContext) -> dict[str, Any]:
        """Join two files.

        Args:
            first: A file.
            second: Another one; it may be missing.
            target: Where to.
        """
        calls.append(target)
        root, texts = Path(context.workspace.root), []
        for path in (first, second):
            with context.reading(path) as place:
                there = place.status is not None
            data = (root / path).read_bytes() if there else b""
            if there:
                context.read(path, stamp_of(data))
            texts.append(data)
        (root / target).parent.mkdir(exist_ok=True)
        (root / target).write_bytes(b"".join(texts))
        (root / target).chmod(0o750)
        context.wrote(target)
        return {"call": len(calls)}

    return join


@dataclass
class Site:
    """A worker with kept results, a workspace with two files, and a tool that joins them."""

    attempts: Attempts
    store: ResultStore
    calls: list[str] = field(default_factory=list)
    version: str = "1"

    @property
    def workspace(self) -> Path:
        """Where the files are."""
        return self.attempts.workspace

    def write(self, **texts: str) -> None:
        """Write files NAME.txt."""
        for name, text in texts.items():
            (self.workspace / f"{name}.txt").write_text(text)

    def text(self, name: str = "ab") -> str:
        """The content of NAME.txt."""
        return (self.workspace / f"{name}.txt").read_text()

    async def run(
        self, chosen: str | Tool, order: CacheOrder | None = None, plan: str = "p", attempts: Attempts | None = None,
        **args: Any,
    ) -> Return:  # fmt: skip
        """One call that asks for an earlier result."""
        found = builtin_tools()[chosen] if isinstance(chosen, str) else chosen
        results = Results(self.store, {found.spec.name: (found.spec.name, found.spec.version)})
        made = attempts or self.attempts
        made = made.but(site=replace(made.site, layers=[results]))
        asked = {"parts": {"cache": order or CacheOrder(asked=True, title="t")}, "plan_id": plan}
        return await made.run(found, made.call(args).model_copy(update=asked))

    async def join(self, **changes: Any) -> Return:
        """Join a.txt and b.txt to ab.txt."""
        given = {"first": "a.txt", "second": "b.txt", "target": "ab.txt"} | changes
        return await self.run(joining(self.calls, self.version), **given)


@pytest.fixture
def site(attempts: Attempts, tmp_path: Path) -> Site:
    """Such a worker."""
    found = Site(attempts, ResultStore(tmp_path / "cache"))
    found.write(a="a", b="b")
    return found


def note_of(done: Return) -> CacheNote:
    """What it says about where its result is from."""
    return done.part(CacheNote)


async def test_the_same_call_again_takes_its_value_and_re_creates_its_files(site: Site) -> None:
    first = await site.join()
    assert (note_of(first).why, note_of(first).kept) == ("first", True)
    (site.workspace / "ab.txt").unlink()
    again = await site.join(plan="q")
    assert (len(site.calls), again.value, site.text()) == (1, first.value, "ab")
    assert note_of(again).taken_from == "p/s"
    assert again.read.keys() == {"a.txt", "b.txt"}
    assert again.wrote["ab.txt"] == stamp_of(b"ab").model_copy(update={"made": True})
    assert (site.workspace / "ab.txt").stat().st_mode & 0o777 == 0o750


async def test_a_changed_file_runs_the_tool_and_is_named_with_both_hashes(site: Site) -> None:
    await site.join()
    site.write(b="B")
    [found] = note_of(await site.join()).differences
    assert len(site.calls) == 2
    assert (found.what, found.name) == ("file", "b.txt")
    assert (found.before, found.after) == (stamp_of(b"b").hash[:16], stamp_of(b"B").hash[:16])


async def test_a_file_changed_back_takes_the_result_of_before(site: Site) -> None:
    first = await site.join()
    site.write(b="B")
    await site.join()
    site.write(b="b")
    back = await site.join(attempts=site.attempts.but(owns=["ab.txt"]))
    assert (len(site.calls), back.value, site.text()) == (2, first.value, "ab")


async def test_a_file_that_was_looked_for_in_vain_and_is_there_now_is_a_change(site: Site) -> None:
    await site.join(second="c.txt")
    assert note_of(await site.join(second="c.txt")).taken_from
    site.write(c="c")
    note = note_of(await site.join(second="c.txt"))
    assert [(each.name, each.before) for each in note.differences] == [("c.txt", "")]


@pytest.mark.parametrize("what", ["argument", "tool"])
async def test_another_argument_or_version_runs_the_tool(site: Site, what: str) -> None:
    await site.join()
    if what == "tool":
        site.version = "2"
        again = await site.join()
    else:
        again = await site.join(target="other.txt")
    assert [each.what for each in note_of(again).differences] == [what]
    assert len(site.calls) == 2


def files_in(folder: Path) -> list[Path]:
    """All files below a directory."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("way", ["content", "entry", "moved"])
async def test_a_store_that_was_altered_is_noticed_and_the_tool_runs_and_mends_it(site: Site, way: str) -> None:
    await site.join()
    [entry], [content] = files_in(site.store.directory / "entries"), files_in(site.store.directory / "contents")
    if way == "content":
        content.write_bytes(b"xx")
    elif way == "entry":
        entry.write_bytes(entry.read_bytes().replace(b'"call":1', b'"call":9'))
    else:
        await site.join(target="other.txt")
        [other] = [path for path in files_in(site.store.directory / "entries") if path != entry]
        shutil.copy(other, entry)
    before = len(site.calls)
    (site.workspace / "ab.txt").unlink()
    assert note_of(await site.join()).why == "damaged"
    assert (len(site.calls), site.text()) == (before + 1, "ab")
    (site.workspace / "ab.txt").unlink()
    assert note_of(await site.join()).taken_from
    assert (len(site.calls), site.text()) == (before + 1, "ab")


async def test_a_file_that_somebody_changed_is_not_overwritten_by_a_kept_one(site: Site) -> None:
    await site.join()
    site.write(ab="edited by a person")
    strict = site.attempts.but(approved=False)
    again = await site.join(attempts=strict)
    assert (note_of(again).why, len(site.calls)) == ("conflict", 2)  # this tool overwrites; a kept result did not


async def test_write_file_conflicts_as_without_kept_results(site: Site) -> None:
    await site.run("write_file", path="out.txt", content="made")
    (site.workspace / "out.txt").write_text("edited by a person")
    known = site.attempts.but(stamps={"out.txt": stamp_of(b"made")})
    with pytest.raises(ApplicationError, match="modified") as caught:
        await site.run("write_file", attempts=known, path="out.txt", content="made")
    assert caught.value.type == "CONFLICT"
    unknown = site.attempts.but(approved=False)
    with pytest.raises(ApplicationError, match="approve") as caught:
        await site.run("write_file", attempts=unknown, path="out.txt", content="made")
    assert caught.value.type == "APPROVAL_REQUIRED"
    assert site.text("out") == "edited by a person"
    gone = site.attempts.but(stamps={"out.txt": stamp_of(b"made")})
    (site.workspace / "out.txt").unlink()
    with pytest.raises(ApplicationError, match=r".") as caught:
        await site.run("write_file", attempts=gone, path="out.txt", content="made")
    assert caught.value.type == "CONFLICT"


async def test_a_kept_result_never_follows_a_link_out_of_the_workspace(site: Site, tmp_path: Path) -> None:
    await site.run("write_file", path="out/x.txt", content="x")
    shutil.rmtree(site.workspace / "out")
    (tmp_path / "elsewhere").mkdir()
    (site.workspace / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ApplicationError, match="PATH_OUTSIDE"):
        await site.run("write_file", path="out/x.txt", content="x")
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_call_with_a_secret_takes_and_keeps_nothing(site: Site) -> None:
    class Filling(Layer):
        async def arguments(self, tool: Tool, call: Call, args: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
            return {**args, "content": "secret"}

    secret = site.attempts.call({"path": "s.txt", "content": "x"}).model_copy(
        update={"parts": {"cache": CacheOrder(asked=True)}}
    )
    results = Results(site.store, {"write_file": ("write_file", "1")})
    made = site.attempts.but(site=replace(site.attempts.site, layers=[results, Filling()]))
    done = await made.run("write_file", secret)
    assert (note_of(done).why, note_of(done).unkept) == ("never", "it is given a secret")
    assert not (site.store.directory / "entries").exists()


@pytest.mark.parametrize("name", ["find_files", "http_request"])
async def test_tools_that_report_no_reads_or_act_outside_are_called(site: Site, name: str) -> None:
    args: dict[str, Any] = {"pattern": "*.txt"} if name == "find_files" else {"url": "http://127.0.0.1:1/"}
    if name == "http_request":
        with pytest.raises(ApplicationError, match=r"127\.0\.0\.1"):
            await site.run(name, **args)
        return
    done = await site.run(name, **args)
    assert (note_of(done).why, done.value) == ("never", ["a.txt", "b.txt"])


async def test_files_that_a_step_lists_are_compared_with_those_that_appear(site: Site) -> None:
    order = CacheOrder(asked=True, reads=["*.txt"])
    first = await site.run("find_files", order, pattern="*.txt")
    assert note_of(await site.run("find_files", order, pattern="*.txt")).taken_from == "p/s"
    site.write(c="c")
    note = note_of(await site.run("find_files", order, pattern="*.txt"))
    assert [(each.what, each.name, each.before) for each in note.differences] == [("file", "c.txt", "")]
    assert first.value == ["a.txt", "b.txt"]


async def test_what_changes_the_files_that_it_reads_is_not_kept(site: Site) -> None:
    done = await site.join(target="a.txt")
    assert note_of(done).unkept == "it changes a file that it reads"
    assert not note_of(await site.join(target="a.txt")).taken_from


async def test_failures_are_never_taken(site: Site) -> None:
    calls = []

    @tool(effect="pure", cache=True, version="1")
    def fails() -> None:
        """Fail."""
        calls.append(1)
        raise ToolError("TOOL_FAILED", "no")

    for _ in range(2):
        with pytest.raises(ApplicationError, match="no"):
            await site.run(fails)
    assert len(calls) == 2


async def test_only_results_of_the_plan_that_is_named_are_taken(site: Site) -> None:
    await site.join(plan="one")
    note = note_of(await site.join(order=CacheOrder(asked=True, since="two"), plan="two"))
    assert (note.why, len(site.calls)) == ("since", 2)
    assert note_of(await site.join(order=CacheOrder(asked=True, since="one"), plan="three")).taken_from
    # What three took is its own.
    assert note_of(await site.join(order=CacheOrder(asked=True, since="three"), plan="four")).taken_from


async def test_a_fresh_run_takes_nothing_and_its_results_are_kept(site: Site) -> None:
    await site.join()
    fresh = await site.join(order=CacheOrder(asked=True, fresh=True), plan="q")
    assert (note_of(fresh).why, note_of(fresh).kept, len(site.calls)) == ("fresh", True, 2)
    assert note_of(await site.join()).taken_from == "q/s"


async def test_large_values_are_taken_when_the_value_store_has_forgotten_them(site: Site, state_dir: Path) -> None:
    (site.workspace / "a.txt").write_text("x" * 100_000)
    first = await site.run("read_file", path="a.txt")
    assert first.large is not None
    shutil.rmtree(state_dir / "values")
    again = await site.run("read_file", path="a.txt")
    assert note_of(again).taken_from == "p/s"
    assert again.large is not None
    assert await site.attempts.values.get(again.large) == "x" * 100_000


async def test_agents_md_that_apply_come_with_a_taken_result(site: Site) -> None:
    await site.run("read_file", path="a.txt")
    (site.workspace / "AGENTS.md").write_text("be brief")
    again = await site.run("read_file", path="a.txt")
    assert note_of(again).taken_from
    assert [note.text for note in again.notes] == ["be brief"]


async def test_results_are_encrypted_with_the_keys_of_the_worker(site: Site, tmp_path: Path) -> None:
    ring = live(ring_file(tmp_path / "ring", key()))
    site.store = ResultStore(tmp_path / "locked", Encrypting(ring))
    site.write(a="needle in a haystack")
    await site.join()
    stored = [path.read_bytes() for path in (tmp_path / "locked").rglob("*") if path.is_file()]
    assert not any(b"needle" in each or b'"call"' in each for each in stored)
    (site.workspace / "ab.txt").unlink()
    assert note_of(await site.join()).taken_from
    assert site.text() == "needle in a haystackb"


async def test_commands_take_results_for_the_files_they_list(site: Site, tmp_path: Path) -> None:
    watched = site.attempts.but(site=replace(site.attempts.site, watcher=Watcher(tmp_path / "watch")))
    order = CacheOrder(asked=True, reads=["a.txt"], outside=True)
    args: dict[str, Any] = {
        "command": "echo ran >> ../ran; mkdir -p bin; cat a.txt > bin/copy; chmod 755 bin/copy; cat a.txt"
    }
    first = await site.run("run_command", order, attempts=watched, **args)
    assert note_of(first).kept, note_of(first).unkept
    shutil.rmtree(site.workspace / "bin")
    again = await site.run("run_command", order, attempts=watched, **args)
    assert (note_of(again).taken_from, again.value) == ("p/s", first.value)
    assert (site.workspace / "bin" / "copy").read_text() == "a"
    assert os.access(site.workspace / "bin" / "copy", os.X_OK)
    assert (site.workspace.parent / "ran").read_text() == "ran\n"
    site.write(a="changed")
    third = await site.run("run_command", order, attempts=watched, **args)
    assert third.value["stdout"] == "changed"
    assert (site.workspace / "bin" / "copy").read_text() == "changed"


async def test_commands_with_access_to_the_network_are_not_taken_unless_the_step_says_so(site: Site) -> None:
    # There is no sandbox, so everything is open.
    done = await site.run("run_command", CacheOrder(asked=True, reads=[]), command="echo x")
    assert note_of(done).unkept == "commands have network access here"


async def test_a_lost_secret_of_the_store_only_means_that_tools_run(site: Site) -> None:
    await site.join()
    (site.store.directory / "key").unlink()
    site.store = ResultStore(site.store.directory)
    assert note_of(await site.join()).kept
    assert len(site.calls) == 2


async def test_a_result_that_is_taken_asks_nothing_of_the_layers_inside(site: Site) -> None:
    class Counting(Layer):
        calls = 0

        async def call(self, attempt: Attempt, inner: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ARG002
            self.calls += 1
            return await inner()

    counting, order = Counting(), {"parts": {"cache": CacheOrder(asked=True)}}
    layers = [Results(site.store, {"write_file": ("write_file", "1")}), counting]
    made = site.attempts.but(site=replace(site.attempts.site, layers=layers))
    call = made.call({"path": "s.txt", "content": "x"}).model_copy(update=order)
    assert (await made.run("write_file", call)).taken_from is None
    (site.workspace / "s.txt").unlink()
    assert (await made.run("write_file", call.model_copy(update={"key": "plan-q/s"}))).taken_from == "p/s"
    assert counting.calls == 1
