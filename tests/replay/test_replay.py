"""Plans that run while the code changes: every recorded history replays, and a change that would break them is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.trees import copy_code
from tests.nightly import only_nightly, sampled
from tests.replay.scenarios import SCENARIOS

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CODE = ("plansurvive", "plans", "runtime", "workflows", "activities", "client", "features", "worker.py")

MUTATIONS = {
    "another activity id": ("tool_call.py", "call_name(name, run", 'call_name(f"x{name}", run'),
    "another order": (
        "execution.py",
        "in self.schedule.ready if name not",
        "in reversed(self.schedule.ready) if name not",
    ),
    "a timer more": (
        "plan.py",
        "    async def _check(self) -> None:\n",
        "    async def _check(self) -> None:\n        await workflow.sleep(1)\n",
    ),
    "no reading of answers": ("llm.py", "kind.model_validate(answer.parsed or {})", 'AnswerProblem(message="unread")'),
    "no record of an agent's end": ("../features/agents/workflow.py", "        await reports.ended(agent)\n", ""),
    "no record of a plan's end": (
        "plan.py",
        "        summary = await recorded(execution.run)\n",
        "        summary = self.summary()\n",
    ),
    "no tools learned for a recovery": (
        "../features/planning/recovering.py",
        "        await self._learn(step)\n",
        "",
    ),
    "no question to the plan's budget": (
        "../features/agents/questions.py",
        "    await permitted(agent, lambda: _characters(agent, question))\n",
        "",
    ),
    "no report of what a coding agent has called": (
        "../features/coding_agents/workflow.py",
        '            await reports.report_to_parent(agent, "", own=calls)\n',
        "",
    ),
    "no news for those who are notified": (
        "../features/notify/in_workflow.py",
        "self._task = asyncio.create_task(self._work())",
        "return",
    ),
    "no question about a tool that changed": ("execution.py", "once_more=once_more", "once_more=False"),
    "no look whether a host lives": ("../features/hosts/place.py", "if await answers(lost):", "if False:"),
    "no word to children to leave a host": (
        "../features/children/place.py",
        'leave."""\n        await self._leave_below(token)\n',
        'leave."""\n',
    ),
    "no answer of a child that has left": (
        "../features/children/place.py",
        "await self._report(left=token, ",
        "dict(left=token, ",
    ),
    "no question to the plan above for events": ("../features/waiting/above.py", "if wants or ends:", "if not self:"),
    "no event for a child plan": (
        "../features/waiting/below.py",
        "self._sending[below.child] = asyncio.create_task(self._send(below.child))",
        "pass",
    ),
    "no place to wait for": (
        "../plans/execution/readiness.py",
        "self.run.steps[step_id].queued = not may_go_on",
        "self.run.steps[step_id].queued = False",
    ),
    "no memo of a plan's end": ("completion.py", "if record.claim is not None:", "if record is None:"),
}


def replay(code: Path, seed: str = "0", *options: str) -> subprocess.CompletedProcess[str]:
    """Replay all histories with a copy of the code, under a hash seed."""
    environ = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(code)}
    command = [sys.executable, str(HERE / "replayer.py"), *options]
    return subprocess.run(command, env=environ, cwd=code, capture_output=True, text=True, timeout=300, check=False)


def test_every_scenario_has_its_history() -> None:
    recorded = {path.stem.rpartition(".")[0] for path in (HERE / "histories").glob("*.json")}
    assert recorded == set(SCENARIOS), "record what is missing: python -m tests.replay.record"
    assert len(recorded) >= 15
    assert all((HERE / "histories" / f"{name}.2.json").exists() for name in SCENARIOS if "continued" in name)


@pytest.mark.parametrize("seed", ["0", only_nightly("4242"), only_nightly("1")])
def test_every_recorded_history_replays_under_any_hash_seed(seed: str) -> None:
    done = replay(ROOT, seed, *(["--all"] if seed != "0" else []))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_such_change_fits_the_code(name: str) -> None:
    file, before, _ = MUTATIONS[name]
    assert before in (ROOT / "workflows" / file).read_text(), f"the mutation '{name}' fits the code no more; adapt it"


@pytest.mark.parametrize("name", sampled(MUTATIONS, 1))
def test_a_change_that_breaks_running_plans_is_seen(name: str, tmp_path: Path) -> None:
    copy_code(CODE, tmp_path)
    file, before, after = MUTATIONS[name]
    path = tmp_path / "workflows" / file
    path.write_text(path.read_text().replace(before, after))
    done = replay(tmp_path, "0", "--first")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "TMPRL1100" in done.stdout
