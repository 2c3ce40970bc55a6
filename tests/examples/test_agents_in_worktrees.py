"""The example with coding agents, as its README says: four issues side by side, reviewed, and merged by a person."""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.worker_features import features_of_worker
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.client.cli.command import Ended, plan
from tests.features.worktrees.repositories import git
from tests.kit.waiting import until

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "agents-in-worktrees"
TEST = "python3 -m unittest"
pytestmark = pytest.mark.uses("agents", "children", "coding_agents", "worktrees")


@pytest.fixture
def at_home(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The example's agents.toml in the state directory; agents and worktrees in directories of the test."""
    text = (EXAMPLE / "agents.toml").read_text().replace("HERE", str(EXAMPLE))
    for name in ("writer", "reader"):
        text = text.replace(f"[agents.{name}]", f'[agents.{name}]\nhome = "{tmp_path / name}"')
    file = Path(environ["PLANS_STATE_DIR"], "agents.toml")
    file.write_text(text)
    file.chmod(0o600)
    return environ | {"PLANS_WORKTREES": str(tmp_path / "worktrees")}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The project of the example."""
    subprocess.run(["sh", str(EXAMPLE / "make_shop.sh"), str(tmp_path / "shop")], check=True)
    return tmp_path / "shop"


@pytest.mark.slow
async def test_issues_are_solved_side_by_side_reviewed_and_merged_by_a_person(
    temporal_client: Client, at_home: dict[str, str], shop: Path
) -> None:
    settings, tools = Settings.read(at_home), load_tools(())
    features = features_of_worker(temporal_client, settings)
    before = git(shop, "rev-parse", "main")
    async with (
        features.running(tools, pytest.fail),
        build(temporal_client, settings, tools, indexed=True, features=features),
    ):
        await until(lambda: listeners(temporal_client, settings.task_queue), "the server sees the worker poll")
        run = commands(at_home)
        who = ["--input", "coder=writer", "--input", "reviewer=reader"]
        started = await run("start", EXAMPLE / "plan.yaml", "--workspace", shop, "--id", "shop", *who)
        assert started.code == 0, started.err

        # A permission of one agent; the others go on meanwhile.
        await pending(run, "the agent of issue 8 asks")
        assert (await run("approve", "shop", "work[8].solve/p1")).code == 0

        await pending(run, "the merge awaits a person", "merge_worktrees")
        assert git(shop, "rev-parse", "main") == before
        assert git(shop, "status", "--porcelain") == "?? review.md"
        report = (shop / "review.md").read_text()
        assert "\n- #8: Rounds half up.\n" in report.partition("Left on")[0]
        assert "- #12: A discount of 120" in report.partition("Left on")[2]
        assert "sum(prices)" in (await run("diff", "shop", "work[7]")).out
        assert (await run("approve", "shop", "merge")).code == 0
        ended = await run("watch", "shop")
        shown = (await run("show", "shop")).out
    assert ended.code == 0, ended.out + ended.err + shown
    assert git(shop, "log", "--format=%s", f"{before}..main").split("\n") == ["Solve the issue"] * 3
    trailers = git(shop, "log", "--format=%(trailers:key=Step,valueonly,separator=%x2C)", f"{before}..main")
    assert sorted(trailers.split()) == ["work[7].solve", "work[8].solve", "work[9].solve"]
    assert "max(price" not in (shop / "prices.py").read_text()
    assert git(shop, "status", "--porcelain") == "?? review.md"


Run = Callable[..., Awaitable[Ended]]


def commands(environ: dict[str, str]) -> Run:
    """Commands of `plan` in this environment."""

    async def run(*arguments: object) -> Ended:
        return await plan(environ, *map(str, arguments))

    return run


async def pending(run: Run, what: str, text: str = TEST) -> Ended:
    """The first `plan pending` that has this text."""

    async def asked() -> Ended | None:
        found = await run("pending")
        return found if text in found.out else None

    found: Ended = await until(asked, what, every=0.3)
    return found
