"""`plan demo`, as a newcomer runs it: in an empty directory, with nothing set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.client.cli.command import plan_process


@pytest.mark.slow
@pytest.mark.sampled
async def test_the_worker_is_killed_no_call_completes_twice_and_all_is_undone_and_removed(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (home := tmp_path / "home").mkdir()
    demo = await plan_process(environ | {"TMPDIR": str(tmp_path), "HOME": str(home)}, "demo", cwd=home)
    assert demo.code == 0, demo.err
    assert re.search(r"kill -9 \d+: the worker is gone", demo.out)
    assert "its worker died, was stopped or too busy to report" in demo.out or "0 that the kill interrupted" in demo.out
    assert "-11 shops, see shops/*.total" in demo.out  # the diff of what it asks about
    assert "There is no terminal to ask, so the demo approves this call itself." in demo.out
    assert "completed: 38 calls completed, 0 of them twice" in demo.out
    assert "13 files were new or changed, 13 are restored; the workspace is as it was." in demo.out
    assert "?key=" not in demo.out + demo.err
    assert list(tmp_path.glob("plans-demo-*")) == []
    assert not Path(environ["PLANS_STATE_DIR"]).exists() or list(Path(environ["PLANS_STATE_DIR"]).iterdir()) == []
