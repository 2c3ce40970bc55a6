"""The control-flow patterns of docs/patterns.md: each plan of examples/patterns runs, and ends as it should.

What happens outside the plan (events, decisions, edits) comes from the test.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.feature import content_of
from plansurvive.client.plan_file import check, load
from tests.examples.pattern_play import Play
from tests.examples.pattern_plays import PLAYS
from tests.nightly import sampled

ROOT = Path(__file__).parent.parent.parent
PATTERNS = ROOT / "examples/patterns"
TABLE = ROOT / "docs/patterns.md"
NAMES = sorted(path.stem for path in PATTERNS.glob("*.yaml"))
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (direct|composed|no) \| (.+) \|$", re.MULTILINE)

LINK = re.compile(r"\(\.\./examples/patterns/(.+?)\.yaml\)")


def rows() -> dict[int, tuple[str, str, str]]:
    """The table: number -> name, kind, how."""
    return {int(number): (name, kind, how) for number, name, kind, how in ROW.findall(TABLE.read_text())}


def test_the_table_has_all_43_patterns_at_least_30_of_them_direct() -> None:
    found = rows()
    assert sorted(found) == list(range(1, 44))
    kinds = [kind for _, kind, _ in found.values()]
    assert kinds.count("direct") >= 30
    counted = (
        f"{kinds.count('direct')} of the 43 are direct, {kinds.count('composed')} are composed, {kinds.count('no')}"
    )
    assert counted in " ".join(TABLE.read_text().split())


def test_every_pattern_that_can_be_said_has_a_plan_and_no_other_has() -> None:
    linked = {
        number: re.findall(r"\(\.\./examples/patterns/(.+?)\.yaml\)", how) for number, (_, _, how) in rows().items()
    }
    assert [names for names in linked.values() if len(names) > 1] == []
    assert sorted(names[0] for names in linked.values() if names) == NAMES
    assert {number for number, names in linked.items() if not names} == {
        number for number, (_, kind, _) in rows().items() if kind == "no"
    }
    assert all(int(name.split("-")[0]) == number for number, names in linked.items() for name in names)
    assert sorted(PLAYS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_of_a_pattern_has_no_problem(name: str) -> None:
    tools = {each: tool.spec for each, tool in load_tools(()).items()}
    plan, problems = check(load(str(PATTERNS / f"{name}.yaml")).data, tools)
    assert plan is not None
    found = problems + content_of(plan, tools, PATTERNS, None)[0]
    assert [each.code for each in found] == (["RUNS_ITSELF"] if name == "22-recursion" else [])


async def ends_as_it_should(name: str, client: Client, queue: str, workspace: Path, **fields: Any) -> str:
    """How each step ended, and its value but for times of sleeps, as JSON. `fields`: of the plan, besides its own."""
    shutil.copy(PATTERNS / f"{name}.yaml", workspace)
    play = await Play.begin(client, queue, workspace, load(str(workspace / f"{name}.yaml")).data | fields)
    ending = await PLAYS[name](play)
    assert (ending.view["status"], play.left_over(ending.view)) == (ending.status, ending.not_completed), ending.view[
        "log"
    ]
    assert play.files() == sorted([f"{name}.yaml", *ending.files])
    assert ending.values == {step: play.value(ending.view, step) for step in ending.values}
    ends = {each["id"]: (each["status"], play.value(ending.view, each["id"])) for each in ending.view["steps"]}
    return re.sub(r'"until": ".*?"', "", json.dumps(ends, indent=1))


@pytest.mark.parametrize("name", sampled(NAMES, 3))
async def test_the_plan_of_a_pattern_ends_as_it_should(
    name: str, temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    await ends_as_it_should(name, temporal_client, queue, workspace)


@pytest.mark.uses("express")
@pytest.mark.parametrize("name", sampled(NAMES, 2))
async def test_it_ends_the_same_with_express(
    name: str, temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    ends = list[str]()
    for express in (False, True):
        own = workspace / str(express)
        own.mkdir()
        ends.append(await ends_as_it_should(name, temporal_client, queue, own, express=express))
    assert ends[0] == ends[1]
