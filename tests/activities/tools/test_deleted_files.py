"""A file that is gone since the run saw it: whoever deleted it, the next change says so and makes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plansurvive.plans.file_stamps import Stamp
from tests.activities.attempts import Attempts

BY_HAND = "was deleted since it was read. Nothing was written"
BY_THE_RUN = "was deleted since it was read, by a step of this run. Nothing was written"
CHANGES = {
    "edit_file": {"oldText": "one", "newText": "two"},
    "edit_file creating": {"oldText": "", "newText": "two"},
    "write_file": {"content": "two"},
    "delete_file": {},
}
GONE: dict[str, Callable[[Path], None]] = {
    "the file": lambda path: path.unlink(),
    "its directory": lambda path: shutil.rmtree(path.parent),
}


@pytest.fixture
async def read(attempts: Attempts) -> Attempts:
    """Attempts of a run that has read d/x."""
    (attempts.workspace / "d").mkdir()
    (attempts.workspace / "d/x").write_text("one")
    return attempts.but(stamps=(await attempts.run("read_file", path="d/x")).read)


def state(attempts: Attempts, state: str) -> Attempts:
    """The same with the stamps in another state."""
    stamps = {path: stamp.model_copy(update={"state": state}) for path, stamp in attempts.stamps.items()}
    return attempts.but(stamps=stamps)


@pytest.mark.parametrize("seen", ["known", "stale"])
@pytest.mark.parametrize("what", ["the file", "its directory"])
@pytest.mark.parametrize("change", CHANGES)
async def test_a_file_deleted_by_hand_is_not_made_again(read: Attempts, change: str, what: str, seen: str) -> None:
    """`stale`: the run was told that the file changed, by a message or when it resumed."""
    GONE[what](read.workspace / "d/x")
    error = await state(read, seen).error(change.split()[0], path="./d/../d/x", **CHANGES[change])
    assert (error.type, error.non_retryable, BY_HAND in error.message) == ("CONFLICT", True, True), error.message
    assert "'d/x'" in error.message
    assert not (read.workspace / "d/x").exists()


@pytest.mark.parametrize("change", ["edit_file", "delete_file"])
async def test_a_file_that_the_run_itself_deleted_is_said_to_be(read: Attempts, change: str) -> None:
    (read.workspace / "d/x").unlink()
    error = await state(read, "deleted").error(change, path="d/x", **CHANGES[change])
    assert (error.type, BY_THE_RUN in error.message) == ("CONFLICT", True), error.message


@pytest.mark.parametrize("change", ["edit_file creating", "write_file"])
async def test_a_run_may_make_again_what_it_deleted_itself(read: Attempts, change: str) -> None:
    (read.workspace / "d/x").unlink()
    await state(read, "deleted").run(change.split()[0], path="d/x", **CHANGES[change])
    assert (read.workspace / "d/x").read_text() == "two"


async def test_a_run_that_reads_a_deleted_file_again_knows_that_it_is_gone(read: Attempts) -> None:
    (read.workspace / "d/x").unlink()
    error = await read.error("read_file", path="d/x")
    assert (error.type, error.details[0]["missing"]) == ("NOT_FOUND", ["d/x"])
    assert "missing" not in (await read.error("read_file", path="other")).details[0]
    assert "deleted" not in error.details[0]  # it did not delete it


async def test_a_file_deleted_and_made_again_counts_by_its_content(read: Attempts) -> None:
    path = read.workspace / "d/x"
    path.unlink()
    path.write_text("other")
    error = await read.error("edit_file", path="d/x", oldText="other", newText="two")
    assert (error.type, "modified since last read" in error.message) == ("CONFLICT", True)
    path.unlink()
    path.write_text("one")
    await read.run("edit_file", path="d/x", oldText="one", newText="two")


async def test_what_somebody_made_in_place_of_a_file_that_the_run_deleted_was_not_read(read: Attempts) -> None:
    strict = type(read.effects)(**{**vars(read.effects), "strict": True})
    gone = state(read, "deleted").but(effects=strict, approved=False)
    assert await gone.code("edit_file", path="d/x", oldText="one", newText="two") == "NOT_READ"
    assert await gone.code("write_file", path="d/x", content="two") == "APPROVAL_REQUIRED"


async def test_a_file_that_the_run_never_saw_does_not_exist(attempts: Attempts) -> None:
    for change in ("edit_file", "delete_file"):
        assert await attempts.code(change, path="x", **CHANGES[change]) == "NOT_FOUND"
    other = attempts.but(stamps={"y": Stamp(hash="", size=0)})
    assert await other.code("edit_file", path="x", **CHANGES["edit_file"]) == "NOT_FOUND"
