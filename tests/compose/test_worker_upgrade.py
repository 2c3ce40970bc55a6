"""A new image of the worker while plans run and wait: they go on with the new code."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import yaml

from tests.compose.ledger import assert_whole, chain, done, until_done
from tests.compose.stack import BUILT, ROOT, Stack

PARTS = (
    *("plansurvive", "plans", "runtime", "activities", "workflows", "client", "features", "apps", "worker.py"),
    *("docker", "Dockerfile", ".dockerignore"),
)
NEW = "# The next version.\n"


def next_version(stack: Stack) -> Path:
    """The project with other code."""
    project = stack.folder / "next"
    project.mkdir()
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, project / name, symlinks=True)
        else:
            shutil.copy(ROOT / name, project / name)
    with (project / "worker.py").open("a") as file:
        file.write(NEW)
    return project


async def test_plans_in_flight_end_with_the_new_image(stack: Stack, figures: list[str]) -> None:
    running, waiting = [f"upgraded-{number}" for number in range(3)], [f"upgraded-asks-{number}" for number in range(3)]
    before = stack.container("worker")["Image"]
    instead = stack.folder / "instead.yml"
    second = yaml.safe_load(instead.read_text())
    for service in BUILT:
        second["services"][service]["build"]["context"] = str(
            next_version(stack) if service == BUILT[0] else stack.folder / "next"
        )
    instead.write_text(yaml.safe_dump(second))
    stack.compose("build", *BUILT)
    for name in waiting:
        await stack.start(chain(name, asks=True, seconds=0))
    for name in running:
        await stack.start(chain(name, seconds=1))
    for name in running:
        await until_done(stack, name, 2)
    began, ran = time.monotonic(), {name: len(set(done(stack, name))) for name in running}
    stack.compose("up", "--detach", "--no-build")
    replaced = time.monotonic() - began
    for name in running:
        await until_done(stack, name, min(ran[name] + 2, 16))
    went_on = time.monotonic() - began
    assert stack.container("worker")["Image"] != before
    assert stack.compose("exec", "-T", "worker", "tail", "-n", "1", "/app/worker.py") == NEW
    for name in waiting:
        approved = await stack.plan("approve", name, "gate")
        assert approved.code == 0, approved.out + approved.err
    assert {await stack.until_ended(name) for name in running + waiting} == {"completed"}
    doubled = sum(assert_whole(stack, name, doubled=0) for name in running + waiting)
    await stack.until_healthy()
    figures.append(
        f"upgrade of the worker: replaced in {replaced:.1f} s, running plans go on after {went_on:.1f} s;"
        f" {len(running + waiting)} of {len(running + waiting)} plans completed, {doubled} steps twice"
    )
