"""What commands had as /tmp goes with its plan, whatever they left there, and nothing else goes with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from plansurvive.runtime.scratch import clear, discard, owned, scratch_of
from tests.kit.waiting import until

UNKNOWN_USER = 65_534


def test_each_run_of_a_workflow_has_its_own_directory(tmp_path: Path) -> None:
    places = {scratch_of(tmp_path, owner) for owner in ("plan-a/1", "plan-a/2", "plan-b/1", "agent-a/1", "plan-a")}
    assert len(places) == 5
    assert scratch_of(tmp_path, "plan-a/1") in places
    assert {place.stat().st_mode & 0o777 for place in places} == {0o700}
    assert [owner for _, owner in owned(tmp_path)] == [owner for _, owner in owned(tmp_path)]
    assert {owner for _, owner in owned(tmp_path)} == {"plan-a", "plan-b", "agent-a"}


async def test_the_end_of_a_workflow_removes_what_all_its_runs_had(tmp_path: Path) -> None:
    for owner in ("plan-a/1", "plan-a/2", "plan-b/1"):
        (scratch_of(tmp_path, owner) / "x").write_text("x")
    discard(tmp_path, "plan-a")

    await until(lambda: [owner for _, owner in owned(tmp_path)] == ["plan-b"], "it is removed")
    discard(tmp_path, "plan-a")  # nothing is there
    assert [owner for _, owner in owned(tmp_path)] == ["plan-b"]


def test_what_a_command_closed_is_removed_and_what_its_links_lead_to_is_not(tmp_path: Path) -> None:
    """As an ordinary user: root passes everywhere."""
    state, precious = tmp_path / "state", tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from plansurvive.runtime.scratch import clear, owned, scratch_of
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({UNKNOWN_USER})
    os.setuid({UNKNOWN_USER})
place = scratch_of(Path({str(state)!r}), "plan-a/1")
deep = place / "a" / "b" / "c"
deep.mkdir(parents=True)
(deep / "file").write_text("x")
os.symlink({str(precious)!r}, deep / "link")
for path in (deep, deep.parent, deep.parent.parent, place):
    path.chmod(0)
[(home, owner)] = owned(Path({str(state)!r}))
assert clear(home), [*home.parent.iterdir()]
assert not [*owned(Path({str(state)!r}))]
"""
    if os.geteuid() == 0:
        state.mkdir()
        for path in (state, precious):
            os.chown(path, UNKNOWN_USER, UNKNOWN_USER)
        for parent in (tmp_path, *tmp_path.parents):
            if not parent.stat().st_mode & 0o001:
                parent.chmod(0o711)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (precious / "file").read_text() == "x"
    assert precious.stat().st_mode & 0o700


def test_a_half_removed_one_is_finished(tmp_path: Path) -> None:
    left = tmp_path / "tmp" / ".gone-0123"
    left.mkdir(parents=True)
    assert [(home.name, owner) for home, owner in owned(tmp_path)] == [(".gone-0123", "")]
    assert clear(left)
    assert not left.exists()
