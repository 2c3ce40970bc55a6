"""docker/backup.sh, while plans run, and docker/restore.sh, after everything was lost."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tests.compose.ledger import assert_whole, chain, until_done
from tests.compose.stack import ROOT, Stack

LARGE = 300_000
"""Characters of a value that is kept in the state directory."""


def script(stack: Stack, name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of docker/ against the stack."""
    command = ["sh", str(ROOT / "docker" / name), str(folder)]
    return subprocess.run(command, env=stack.environ, capture_output=True, text=True, check=False)


async def test_plans_and_values_are_back_after_everything_was_lost(stack: Stack, figures: list[str]) -> None:
    large = {"id": "text", "tool": "run_python", "requiresApproval": False, "args": {"code": f"print('x' * {LARGE})"}}
    copied = {"path": "large.txt", "content": "$text.stdout"}
    copy = {"id": "copy", "tool": "write_file", "requiresApproval": False, "args": copied, "dependsOn": ["gate"]}
    gate = {"id": "gate", "tool": "run_command", "args": {"command": "true"}, "dependsOn": ["text"]}
    await stack.start({"title": "Large", "id": "large", "workspace": "/workspace", "steps": [large, gate, copy]})
    await stack.until_asked("large")
    await stack.start(chain("waits", asks=True, seconds=0))
    await stack.start(chain("runs", seconds=0.6))
    await stack.until_asked("waits")
    await until_done(stack, "runs", 3)
    backup, began = stack.folder / "backup", time.monotonic()
    made = script(stack, "backup.sh", backup)
    assert made.returncode == 0, made.stderr
    took = time.monotonic() - began
    sizes = {path.name: path.stat().st_size for path in backup.iterdir()}
    assert {path.stat().st_mode & 0o077 for path in backup.iterdir()} == {0}
    await stack.start(chain("later", asks=True))

    stack.compose("down", "--volumes", "--timeout", "20")
    lose(stack.folder / "state")
    began = time.monotonic()
    restored = script(stack, "restore.sh", backup)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    await stack.until_healthy()
    figures.append(
        f"backup in {took:.1f} s ({sum(sizes.values()) / 1e6:.1f} MB); restored and healthy after"
        f" {time.monotonic() - began:.0f} s"
    )
    assert await stack.status("later") == ""
    for name in ("waits", "large"):
        await stack.until_asked(name)
        approved = await stack.plan("approve", name, "gate")
        assert approved.code == 0, approved.out + approved.err
    ended = {name: await stack.until_ended(name) for name in ("waits", "large", "runs")}
    assert ended == dict.fromkeys(ended, "completed")
    assert (stack.workspace / "large.txt").stat().st_size == LARGE + 1
    assert_whole(stack, "waits", doubled=0)


async def test_half_a_backup_is_refused_before_anything_is_touched(stack: Stack) -> None:
    half = stack.folder / "half"
    half.mkdir()
    (half / "temporal.sql").write_text("select 1;\n")
    refused = script(stack, "restore.sh", half)
    assert refused.returncode == 1
    assert "nothing was changed" in refused.stderr
    assert stack.unhealthy() == {}


def lose(folder: Path) -> None:
    """Remove everything in a directory, but not the directory."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
