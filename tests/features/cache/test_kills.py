"""A worker that dies while it re-creates files: the next attempt has all of them, exactly, and the tool is not called;
several workers that share results."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.features.cache.model import CacheNote
from plansurvive.features.cache.store import ResultStore
from tests.features.cache.dying import FILES, taken

ROOT = Path(__file__).resolve().parents[3]
POINTS = ("before_effect", "after_temporary", "after_intent", "after_swap", "after_effect", "after_done")


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3, FILES])
@pytest.mark.parametrize("point", POINTS)
def test_files_are_re_created_whole_however_often_the_worker_dies(tmp_path: Path, point: str, number: int) -> None:
    workspace, state = tmp_path / "workspace", tmp_path / "state"
    workspace.mkdir()
    asyncio.run(taken(workspace, state, "plan-p/one", ToolEnvironment(), again=False))
    for path in (workspace / "out").iterdir():
        path.unlink()
    command = [sys.executable, "-m", "tests.features.cache.dying", str(workspace), str(state), "plan-q/two"]
    died = subprocess.run([*command, point, str(number)], cwd=ROOT, check=False, timeout=120)
    assert died.returncode == 9
    whole = {str(each): f"text {each}" for each in range(FILES)}
    there = {
        path.name: path.read_text() for path in (workspace / "out").iterdir() if not path.name.startswith(".plans")
    }
    assert there.items() <= whole.items()  # whole files or none
    done = asyncio.run(taken(workspace, state, "plan-q/two", ToolEnvironment(), again=True))
    assert done.taken_from == done.part(CacheNote).taken_from == "p/s"
    assert {path.name: path.read_text() for path in (workspace / "out").iterdir()} == whole
    assert (workspace / "called").read_text() == "x"


async def test_workers_that_keep_and_take_the_same_results_at_once_agree(tmp_path: Path) -> None:
    """Each has a store of its own in one directory, which none of them has made yet."""
    folders = [tmp_path / f"workspace{number}" for number in range(6)]
    for folder in folders:
        folder.mkdir()
    calls = [taken(folder, tmp_path / "state", f"plan-{folder.name}/s", ToolEnvironment(), False) for folder in folders]
    for done in await asyncio.gather(*calls):
        assert done.value == FILES
        assert done.part(CacheNote).kept or done.taken_from
    later = tmp_path / "later"
    later.mkdir()
    found = await taken(later, tmp_path / "state", "plan-later/s", ToolEnvironment(), again=False)
    assert found.taken_from
    assert sorted(path.name for path in (later / "out").iterdir()) == [str(each) for each in range(FILES)]
    assert not (later / "called").exists()


@pytest.mark.slow
@pytest.mark.sampled
def test_the_secret_of_a_directory_is_the_same_for_all_that_make_it_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from plansurvive.features.cache.store import ResultStore;"
        " print(ResultStore(pathlib.Path(sys.argv[1])).secret.hex())"
    )
    made = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    found = {each.communicate(timeout=120)[0].strip() for each in made}
    assert found == {ResultStore(tmp_path).secret.hex()}
