"""Prepares a release: `python -m scripts.release VERSION --from REVISION`. Needs a clean tree and publishes nothing.

1. Plans that the previous release (a git revision; for the first one, any before) began are ended by this code, in the
   same state directory; and its worker runs a plan while one of this code makes calls, as where workers are upgraded
   one after the other.
2. Histories of this release are recorded into `tests/replay/releases/VERSION`; these and those of all releases replay.
3. The version is written where it stands (PLACES), and what CHANGELOG.md says under Unreleased becomes its section.
4. The wheel is built into `dist/`, and the images where Docker runs.

Steps 1 and 2 leave the tree as it was if they fail; `git checkout .` and `git clean -df tests/replay/releases` undo all
of it. The commit and the tag are left to a person.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import io
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASES = ROOT / "tests" / "replay" / "releases"
SCENARIOS = (
    "chain", "fan-out", "approval", "retry", "loops-continued", "batches", "child-plan", "agent-step",
    "agent-continued", "events", "continued", "notifications", "finally-cancelled", "conditions",
    "express", "policy", "quota",
)  # fmt: skip
"""What is recorded of each release: one scenario per kind of command that a workflow gives."""
PLANS = 12
IMAGES = ("worker", "web")
"""Targets of the Dockerfile, and the ends of their images' names."""
_IMAGES = tuple(f"plans-{name}:{{}}" for name in IMAGES)
PLACES: Mapping[str, tuple[str, ...]] = {
    "pyproject.toml": ('\nversion = "{}"\n',),
    "deploy/helm/plans/Chart.yaml": ("\nversion: {}\n", '\nappVersion: "{}"\n'),
    "docker-compose.yml": _IMAGES,
    "docs/kubernetes.md": _IMAGES,
    "docs/operations.md": _IMAGES[:1],
    "plugins/plans/.claude-plugin/plugin.json": ('\n  "version": "{}",\n',),
    "plugins/plans/.codex-plugin/plugin.json": ('\n  "version": "{}",\n',),
}
"""Where the version stands, by file: the texts around it."""
VERSION = re.compile(r"\d+\.\d+\.\d+")


def current(root: Path = ROOT) -> str:
    """The version that pyproject.toml names. Raises ValueError if there is none."""
    found = re.search(r'^version = "([^"]+)"$', (root / "pyproject.toml").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError("pyproject.toml names no version")
    return found[1]


def stamped(root: Path, version: str) -> dict[Path, str]:
    """The files of PLACES with another version. Raises ValueError where today's is missing."""
    old, found = current(root), {}
    for name, texts in PLACES.items():
        content = (root / name).read_text()
        for text in texts:
            if text.format(old) not in content:
                raise ValueError(f"{name} does not say {text.format(old).strip()!r}")
            content = content.replace(text.format(old), text.format(version))
        found[root / name] = content
    return found


def refusal(version: str, root: Path = ROOT) -> str:
    """Why this version cannot be released; empty if it can: it is newer, or the tree's own and not released yet."""
    if not VERSION.fullmatch(version):
        return f"{version!r} is not a version such as 1.0.0"
    own, is_released = current(root), (root / RELEASES.relative_to(ROOT) / version).exists()
    if _numbers(version) < _numbers(own) or is_released:
        return f"{version} is not newer than {own}, or released already"
    return ""


def changelog(text: str, version: str, day: date) -> str:
    """The changelog with what is unreleased as the section of a version. Raises ValueError if there is nothing."""
    head, found, rest = text.partition("## [Unreleased]\n")
    unreleased = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    if not found or not unreleased.strip():
        raise ValueError("CHANGELOG.md has nothing under Unreleased")
    return f"{head}{found}\n## [{version}] - {day.isoformat()}\n{rest}"


def upgrade(revision: str) -> None:
    """Have plans that a revision began ended by this tree, and one run by both side by side.

    Raises SystemExit if one does not complete, or a value is wrong.
    """
    from tests.upgrades.fleet import beside_revision, fleet_of, from_revision

    async def run(code: Path) -> None:
        async with fleet_of() as fleet:
            ended = await from_revision(fleet, code, PLANS)
        if ended != {"completed": PLANS}:
            raise SystemExit(f"plans of {revision} did not complete: {dict(ended)}")
        print(f"{PLANS} plans of {revision} completed")
        async with fleet_of() as fleet:
            wrong = await beside_revision(fleet, code, PLANS)
        if wrong:
            raise SystemExit(f"a worker of {revision} misread results of this tree: steps {', '.join(wrong)}")
        print(f"a worker of {revision} understood a worker of this tree")

    with tempfile.TemporaryDirectory(prefix="plans-release-") as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        asyncio.run(run(Path(folder)))


def record(version: str) -> None:
    """Record the histories of this release, and replay those of all. Raises SystemExit if one does not replay."""
    from tests.replay.record import record as recorded

    folder = RELEASES / version
    try:
        asyncio.run(recorded(list(SCENARIOS), folder))
        replayer = [sys.executable, str(ROOT / "tests" / "replay" / "replayer.py"), "--all"]
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        if subprocess.run(replayer, cwd=ROOT, env=environ, check=False).returncode:
            raise SystemExit("the release would break plans: see the histories above")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def wheel(version: str) -> Path:
    """Build the wheel of that version."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", "dist", "."], cwd=ROOT, check=True)
    (found,) = (ROOT / "dist").glob(f"*-{version}-*.whl")
    return found


def images(version: str, docker: str | None, more: list[str]) -> None:
    """Build the images and have each load the worker, or say how: where Docker does not run, or nobody wants it to.

    `more`: further arguments of `docker build`.
    """
    tags = {name: f"plans-{name}:{version}" for name in IMAGES}
    builds = [["build", *more, "--target", name, "--tag", tag, "."] for name, tag in tags.items()]
    if docker is None:
        print("No images were built. Where Docker runs, at the release's commit:")
        print("\n".join(f"  docker {' '.join(build)}" for build in builds))
        return
    for build, tag in zip(builds, tags.values(), strict=True):
        subprocess.run([docker, *build], cwd=ROOT, check=True)
        subprocess.run(
            [docker, "run", "--rm", "--network=none", tag, "python", "-c", "import plansurvive.worker"], check=True
        )
        print(f"built {tag}")


def running_docker() -> str | None:
    """Docker's program, if its engine answers."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode:
        return None
    return docker


def asked() -> argparse.Namespace:
    """The command's arguments, of a release that can be made; ends the program otherwise."""
    parser = argparse.ArgumentParser(prog="python -m scripts.release", description="Prepare a release.")
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument(
        "--from",
        dest="revision",
        required=True,
        metavar="REVISION",
        help="the previous release; of the first one, an earlier revision",
    )
    parser.add_argument(
        "--date", type=date.fromisoformat, default=datetime.now(UTC).date(), help="of the release: today"
    )
    parser.add_argument("--no-image", action="store_true", help="build no images, also where Docker runs")
    parser.add_argument(
        "--docker", type=shlex.split, default=[], metavar="ARGUMENTS",
        help="further arguments of `docker build`, such as those of the Dockerfile for builds behind a mirror",
    )  # fmt: skip
    given = parser.parse_args()
    if problem := refusal(given.version):
        parser.error(problem)
    if subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{given.revision}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    ).returncode:
        parser.error(f"there is no revision {given.revision}")
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        parser.error("the tree has changes that are not committed")
    return given


def main() -> None:
    """Prepare the release."""
    given = asked()
    logging.disable(logging.WARNING)  # of attempts that fail, as scenarios have them do
    history = ROOT / "CHANGELOG.md"
    written = {**stamped(ROOT, given.version), history: changelog(history.read_text(), given.version, given.date)}
    upgrade(given.revision)
    record(given.version)
    for path, text in written.items():
        path.write_text(text)
    print(f"built {wheel(given.version).relative_to(ROOT)}")
    images(given.version, None if given.no_image else running_docker(), given.docker)
    tag = f"v{given.version}"
    print("Left to do: read CHANGELOG.md, run `make test-all`, then")
    print(f"  git add -A && git commit -m 'Release {given.version}' && git tag -a {tag} -m {tag}")
    gc.collect()
    sys.stdout.flush()
    os._exit(0)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    main()
