"""`make demo`, as a newcomer runs it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from plansurvive.runtime.background_worker import stop_workers
from plansurvive.runtime.settings import Settings

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.sampled
async def test_the_demo_ends_with_a_completed_plan_a_link_and_a_report(environ: dict[str, str], tmp_path: Path) -> None:
    try:
        demo = await asyncio.create_subprocess_exec(
            *(sys.executable, str(ROOT / "scripts/demo.py")),
            env=environ | {"TMPDIR": str(tmp_path)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asyncio.wait_for(demo.communicate(), 300)
        text = output.decode()
        assert demo.returncode == 0, text
        assert "6 of 6 steps" in text
        assert "the total is **25.57**" in text
    finally:
        await stop_workers(Settings.read(environ))
