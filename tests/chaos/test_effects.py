"""kill -9 at every named point of every tool that changes files: no effect is lost, none happens twice.

By default every point of every tool once, PLANS_CHAOS_KILLS=100 makes a hundred; the same on a real server costs some
seconds per kill.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.conftest import KILLS, ROOT, Chaos
from tests.chaos.faults import POINTS, command
from tests.kit.driving import statuses, step
from tests.kit.waiting import until
from tests.nightly import only_nightly, sampled

TOOLS: dict[str, dict[str, Any]] = {
    "write_file": {"path": "d/new", "content": "written\n"},
    "edit_file": {"path": "old", "oldText": "a", "newText": "aa"},
    "create_directory": {"path": "e/f"},
    "delete_file": {"path": "gone"},
}
LAID = {"old": "-a-\n", "gone": "deleted\n"}
DONE = {"write_file": "d/new", "edit_file": "old", "create_directory": "e/f", "delete_file": "gone"}
CELLS = [
    (tool, point)
    for tool in TOOLS
    for point in POINTS
    if point != "after_temporary" or tool in ("write_file", "edit_file")
]
AFTER_THE_EFFECT = [(tool, point) for tool, point in CELLS if point in ("after_swap", "after_effect")]
ROUNDS = max(1, round(KILLS / len(CELLS) + 0.5)) if KILLS > 3 else 1


class Victims:
    """The program that makes attempts which may die."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.chaos.victims"]
        self.process = subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def attempt(self, **case: Any) -> dict[str, Any]:
        """What became of one attempt."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def victims() -> Iterator[Victims]:
    """It, until the end of the module."""
    found = Victims()
    yield found
    assert found.process.stdin
    found.process.stdin.close()
    assert found.process.wait(30) == 0


def lay(folder: Path) -> tuple[dict[str, str], Path]:
    """A workspace with files, and a state directory; where they are."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    for name, text in LAID.items():
        (workspace / name).write_text(text)
    return {"workspace": str(workspace), "state": str(folder / "state")}, workspace


def look(workspace: Path) -> dict[str, str]:
    """Everything in it: texts of files, nothing for directories."""
    return {
        str(path.relative_to(workspace)): path.read_text() if path.is_file() else "" for path in workspace.rglob("*")
    }


@pytest.fixture(scope="module")
def expected(victims: Victims, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each tool gives back, and leaves, when nothing is killed."""
    found = {}
    for tool, args in TOOLS.items():
        where, workspace = lay(tmp_path_factory.mktemp("undisturbed"))
        answer = victims.attempt(**where, tool=tool, args=args, step="s")
        found[tool] = (answer["value"], look(workspace))
    return found


@pytest.mark.parametrize(("tool", "point"), sampled(CELLS, 6))
def test_an_effect_happens_once_whenever_its_worker_dies(
    victims: Victims, expected: dict[str, Any], tmp_path: Path, tool: str, point: str
) -> None:
    for number in range(ROUNDS):
        where, workspace = lay(tmp_path / str(number))
        case = {**where, "tool": tool, "args": TOOLS[tool], "step": "s"}
        assert victims.attempt(**case, point=point) == {"killed": True}
        again = victims.attempt(**case, again=True)
        assert (again["value"], look(workspace)) == expected[tool]
        assert victims.attempt(**case, again=True)["value"] == expected[tool][0]
        assert look(workspace) == expected[tool][1]


RECOVERIES = [(tool, point) for tool, point in CELLS if point in ("after_intent", "after_swap", "after_effect")]


@pytest.mark.parametrize(("tool", "point"), sampled(RECOVERIES, 2))
def test_an_effect_happens_once_at_whatever_line_its_recovery_dies_too(
    victims: Victims, expected: dict[str, Any], tmp_path: Path, tool: str, point: str
) -> None:
    """The recovery removes the evidence by which the next one would have to decide."""
    for number in range(1, 200):
        where, workspace = lay(tmp_path / str(number))
        case = {**where, "tool": tool, "args": TOOLS[tool], "step": "s"}
        assert victims.attempt(**case, point=point) == {"killed": True}
        died = victims.attempt(**case, again=True, line=["effect_recovery.py", number])["killed"]
        again = victims.attempt(**case, again=True)
        assert (again["value"], look(workspace)) == expected[tool], f"line {number} of those it came to"
        if not died:
            break
    assert 1 < number < 199


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_an_effect_happens_once_at_whatever_line_its_worker_dies(
    victims: Victims, expected: dict[str, Any], tmp_path: Path, tool: str
) -> None:
    for number in range(1, 500):
        where, workspace = lay(tmp_path / str(number))
        case = {**where, "tool": tool, "args": TOOLS[tool], "step": "s"}
        died = victims.attempt(**case, line=["file_change.py", number])["killed"]
        again = victims.attempt(**case, again=True)
        assert (again["value"], look(workspace)) == expected[tool], f"line {number} of those it came to"
        if not died:
            break
    assert 20 < number < 499


@pytest.mark.parametrize(
    ("tool", "point"), sampled([cell for cell in CELLS if cell[1] in ("after_swap", "after_effect")], 3)
)
def test_what_somebody_does_after_the_effect_is_not_undone_by_the_next_attempt(
    victims: Victims, tmp_path: Path, tool: str, point: str
) -> None:
    where, workspace = lay(tmp_path)
    case = {**where, "tool": tool, "args": TOOLS[tool], "step": "s"}
    assert victims.attempt(**case, point=point)["killed"]
    if tool == "create_directory":
        (workspace / "e/f/theirs").touch()
    else:
        (workspace / "theirs").write_text("-a- theirs\n")
        (workspace / "theirs").rename(workspace / DONE[tool])
    before = {name: text for name, text in look(workspace).items() if not name.startswith(".plans-")}
    assert "value" in victims.attempt(**case, again=True)
    assert look(workspace) == before


def test_the_file_is_settled_for_another_step_too(victims: Victims, tmp_path: Path) -> None:
    where, workspace = lay(tmp_path)
    first = {**where, "tool": "edit_file", "args": TOOLS["edit_file"], "step": "s"}
    assert victims.attempt(**first, point="after_swap")["killed"]
    edit = {"path": "old", "oldText": "aa", "newText": "b"}
    assert "value" in victims.attempt(**where, tool="edit_file", args=edit, step="t")
    assert "value" in victims.attempt(**first, again=True)
    assert look(workspace)["old"] == "-b-\n"


def test_without_the_log_the_same_death_doubles_the_effect(victims: Victims, tmp_path: Path) -> None:
    where, workspace = lay(tmp_path)
    case = {
        **where,
        "tool": "edit_file",
        "args": {**TOOLS["edit_file"], "oldText": "a-", "newText": "aa-"},
        "step": "s",
    }
    assert victims.attempt(**case, point="after_effect")["killed"]
    for path in Path(where["state"]).glob("log.*"):
        path.unlink()
    assert "value" in victims.attempt(**case, again=True)
    assert look(workspace)["old"] == "-aaa-\n"


def test_a_directory_that_is_gone_leaves_the_outcome_unknown(victims: Victims, tmp_path: Path) -> None:
    where, workspace = lay(tmp_path)
    case = {**where, "tool": "write_file", "args": TOOLS["write_file"], "step": "s"}
    assert victims.attempt(**case, point="after_intent")["killed"]
    (workspace / "d").rename(workspace / "elsewhere")
    assert victims.attempt(**case, again=True) == {"killed": False, "code": "OUTCOME_UNKNOWN"}


@pytest.mark.parametrize("point", [only_nightly("after_intent"), only_nightly("after_effect")])
async def test_killed_workers_of_a_real_server_lose_and_double_nothing(chaos: Chaos, point: str) -> None:
    """A chain of edits of one file, each adding one letter: every first attempt dies with its worker."""
    count = max(1, KILLS // 3)
    (chaos.plans.workspace / "x").write_text("<>\n")
    steps = [
        {
            "id": f"s{number}",
            "tool": "edit_file",
            "args": {"path": "x", "oldText": ">", "newText": "+>"},
            "dependsOn": [f"s{number - 1}"] if number else [],
        }
        for number in range(count)
    ]
    chaos.worker.command = command(point, "kill")
    await chaos.worker.up()
    plan = await chaos.plans.start(steps)
    for _ in range(count):
        await chaos.worker.died()
        await chaos.worker.up()
    view = await plan.ended()
    assert set(statuses(view).values()) == {"completed"}
    assert (chaos.plans.workspace / "x").read_text() == f"<{'+' * count}>\n"
    assert step(view, "s0")["result"]["attempt"] == 1
    assert [path.name for path in chaos.plans.workspace.iterdir()] == ["x"]


@pytest.mark.slow
async def test_a_command_that_must_not_be_repeated_is_in_doubt_after_its_worker_died(chaos: Chaos) -> None:
    args = {"command": "echo once >> log; sleep 300"}
    await chaos.worker.up()
    plan = await chaos.plans.start(
        [{"id": "s", "tool": "run_command", "args": args, "repeatable": False, "requiresApproval": False}]
    )
    log = chaos.plans.workspace / "log"
    await until(log.exists, "the command runs")
    chaos.worker.kill()
    await chaos.worker.up()
    view = await plan.ended()
    assert step(view, "s")["result"]["code"] == "OUTCOME_UNKNOWN"
    assert view["status"] == "partial"
    assert log.read_text() == "once\n"
