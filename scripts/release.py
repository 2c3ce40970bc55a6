"""Prepares a release: `python -m scripts.release VERSION --from REVISION`. Needs a clean tree; publishes nothing.

1. Plans that the previous release (a git revision) began are ended by this code.
2. Histories of this release are recorded into `tests/replay/releases/VERSION`, where they are replayed from then on.
3. The wheel is built into `dist/`, and the image where Docker runs.

It says what is left to a person: the version in pyproject.toml, the changelog, the commit and the tag.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASES = ROOT / "tests" / "replay" / "releases"
SCENARIOS = (
    "chain", "fan-out", "approval", "retry", "loops-continued", "batches", "child-plan", "agent-step",
    "agent-continued", "events", "continued", "notifications", "finally-cancelled", "conditions",
)  # fmt: skip
"""What is recorded of each release: one scenario per kind of command that a workflow gives."""
PLANS = 12


def upgrade(revision: str) -> None:
    """Have plans that a revision began ended by this tree. Raises SystemExit if one does not complete."""
    from tests.upgrades.fleet import fleet_of, from_revision

    async def run(code: Path) -> None:
        async with fleet_of() as fleet:
            ended = await from_revision(fleet, code, PLANS)
        if ended != {"completed": PLANS}:
            raise SystemExit(f"plans of {revision} did not complete: {dict(ended)}")
        print(f"{PLANS} plans of {revision} completed")

    with tempfile.TemporaryDirectory(prefix="plans-release-") as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        asyncio.run(run(Path(folder)))


def record(version: str) -> None:
    """Record the histories of this release."""
    from tests.replay.record import record as recorded

    asyncio.run(recorded(list(SCENARIOS), RELEASES / version))


def build(version: str) -> None:
    """Build the wheel, and the image where Docker runs."""
    wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist", "."]
    subprocess.run(wheel, cwd=ROOT, check=True)
    docker = shutil.which("docker")
    if docker and not subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        subprocess.run([docker, "build", "--tag", f"plans-that-survive:{version}", "."], cwd=ROOT, check=True)
    else:
        print("no image was built: Docker does not run here")


def main() -> None:
    """Prepare the release."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description="Prepare a release.")
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("--from", dest="revision", required=True, metavar="REVISION", help="the previous release")
    given = parser.parse_args()
    if not re.fullmatch(r"\d+\.\d+\.\d+", given.version):
        parser.error(f"{given.version!r} is not a version such as 1.0.0")
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        parser.error("the tree has changes that are not committed")
    upgrade(given.revision)
    record(given.version)
    build(given.version)
    print("Left to do: the version in pyproject.toml, a section in CHANGELOG.md, a commit, a tag.")
    gc.collect()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
