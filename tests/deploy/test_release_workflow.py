"""The workflow that publishes a release: what it runs is there and pinned, and no job may more than it needs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / ".github/workflows/release.yml").read_text()
WORKFLOW = yaml.safe_load(TEXT)
JOBS: dict[str, Any] = WORKFLOW["jobs"]
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]
COMMANDS = "\n".join(step["run"] for _, step in STEPS if "run" in step)
MAY = {
    "build": {"contents": "read", "id-token": "write", "attestations": "write"},
    "index": {"id-token": "write"},
    "images": {"contents": "read", "packages": "write", "id-token": "write", "attestations": "write"},
    "chart": {"contents": "read", "packages": "write"},
    "release": {"contents": "write"},
}


def test_only_the_tag_of_a_version_starts_it() -> None:
    assert WORKFLOW[True] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}  # YAML reads `on` as true


def test_every_action_is_pinned_to_a_commit_and_says_its_version() -> None:
    used = re.findall(r"uses: (\S+)(.*)", TEXT)
    assert len(used) == len([step for _, step in STEPS if "uses" in step]) > 0
    for action, remark in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", remark), remark
    assert len(set(used)) == len({action.partition("@")[0] for action, _ in used}), "one version of each"


def test_a_job_may_only_what_it_needs() -> None:
    assert WORKFLOW["permissions"] == {}
    assert {name: job["permissions"] for name, job in JOBS.items()} == MAY
    for _, step in STEPS:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    assert "secrets." not in TEXT


def test_nothing_is_published_before_everything_was_tested() -> None:
    steps = [step.get("run", "") for step in JOBS["build"]["steps"]]
    tested = next(number for number, run in enumerate(steps) if ".ci/run" in run)
    built = next(number for number, run in enumerate(steps) if "hatchling build" in run)
    assert tested < built
    assert {name: job.get("needs") for name, job in JOBS.items()} == {
        "build": None, "index": "build", "images": "build", "chart": "images", "release": ["index", "images", "chart"],
    }  # fmt: skip


def test_what_it_runs_is_there() -> None:
    assert (ROOT / ".ci/run").exists()
    assert "\naudit:" in (ROOT / "Makefile").read_text()
    assert f"helm package {(ROOT / 'deploy/helm/plans').relative_to(ROOT)}" in COMMANDS
    assert yaml.safe_load((ROOT / "deploy/helm/plans/Chart.yaml").read_text())["name"] == "plans"
    targets = set(re.findall(r"^FROM \S+ AS (\w+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert set(JOBS["images"]["strategy"]["matrix"]["target"]) == targets


def test_an_expression_reaches_a_shell_through_the_environment_only() -> None:
    assert "${{" not in COMMANDS


@pytest.mark.parametrize("run", [step["run"] for _, step in STEPS if "run" in step])
def test_its_commands_are_a_shells(run: str) -> None:
    done = subprocess.run(["bash", "-n"], input=run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path: Path) -> None:
    program = re.search(r"awk -v version=\"\$\{VERSION#v\}\" '([^']+)'", COMMANDS)
    assert program
    log = tmp_path / "CHANGELOG.md"
    log.write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2027-01-01\n\n- New.\n\n## [1.0.0] - 2026-12-01\n\n- Old.\n"
    )
    command = ["awk", "-v", "version=1.1.0", program[1], str(log)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "- New."
