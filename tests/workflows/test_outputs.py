"""Long output of commands in plans and agents: whole for the next step, in part for models, and in `plan logs`."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from plansurvive.client.verbs import resume
from plansurvive.features.outputs.feed import Wrote, feed
from plansurvive.runtime.value_store import ValueStore
from tests.kit.driving import Plans, Started, step
from tests.nightly import only_nightly
from tests.workflows.agents import Serving, call, says, serving

NOISE = "import random, sys; r = random.Random(7); [sys.stdout.buffer.write(r.randbytes(1_000_000)) for _ in range({})]"


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


def command(name: str, text: str, *needs: str, **more: Any) -> dict[str, Any]:
    args = {"command": text, **more.pop("args", {})}
    head = {"id": name, "tool": "run_command", "args": args, "requiresApproval": False, "timeout": 120.0}
    return {**head, "dependsOn": list(needs), **more}


def values(plan: Started) -> ValueStore:
    external = plan.client.data_converter.external_storage
    assert external is not None
    return ValueStore(external.drivers[0])


async def written(plan: Started, step_id: str = "") -> dict[str, bytes]:
    """By step, what `plan logs` shows of its output."""
    found: dict[str, bytes] = {}
    async for event in feed(plan.client, values(plan), plan.id, step_id):
        if isinstance(event, Wrote):
            found[event.of.label] = found.get(event.of.label, b"") + event.data
    return found


@pytest.mark.parametrize("megabytes", [5, only_nightly(200)])
@pytest.mark.crosses_runs
async def test_output_of_megabytes_reaches_the_next_step_whole(plans: Plans, megabytes: int) -> None:
    build = command("build", f"{sys.executable} -c '{NOISE.format(megabytes)}' | tee original; echo done >&2")
    write = {"id": "write", "tool": "write_file", "args": {"path": "copy", "content": "$build.stdout"}}
    short = {
        "id": "short",
        "tool": "write_file",
        "args": {"path": "code", "content": "{{build.exitCode}} {{build.stderr}}"},
    }
    only = command("only", "echo fine", when="build.exitCode == `0` && contains(build.stderr, 'done')")
    plan = await plans.start([build, write, short, only])
    view = await plan.ended()
    assert view["status"] == "completed", view["steps"]
    digests = [hashlib.sha256((plans.workspace / name).read_bytes()).hexdigest() for name in ("original", "copy")]
    assert digests[0] == digests[1]
    assert step(view, "write")["result"]["value"]["bytes"] == megabytes * 1_000_000
    assert (plans.workspace / "code").read_text() == "0 done\n"
    assert max(event.ByteSize() for event in await plan.events()) < 40_000
    text = await plan.handle.query("text")
    assert f"Output: {megabytes * 1_000_000:,} bytes: plan logs {view['id']} build" in text


async def test_a_condition_on_long_output_fails_the_step_that_asks(plans: Plans) -> None:
    view = await plans.run([command("build", "seq 1 100000"), command("maybe", "true", when="build.stdout == 'x'")])
    assert step(view, "maybe")["result"]["code"] == "BAD_EXPRESSION"
    assert "too large for a condition" in step(view, "maybe")["result"]["error"]


async def test_a_resumed_plan_uses_and_shows_the_output_that_was_kept(plans: Plans) -> None:
    write = {"id": "write", "tool": "write_file", "args": {"path": "out/copy", "content": "$build.stdout"}}
    (plans.workspace / "out").touch()
    plan = await plans.start([command("build", "echo once >> runs; seq 1 200000"), write])
    assert (await plan.ended())["status"] == "partial"
    (plans.workspace / "out").unlink()
    again = await resume.resume(plan.client, plan.id)
    resumed = Started(plan.client, f"plan-{again.plan_id}")
    assert (await resumed.ended())["status"] == "completed"
    expected = "".join(f"{number}\n" for number in range(1, 200_001))
    assert (plans.workspace / "out/copy").read_text() == expected
    assert (await written(resumed))["build"].decode() == expected
    assert (plans.workspace / "runs").read_text() == "once\n"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_model_reads_on_in_long_output_and_its_calls_have_logs(serve: Serving) -> None:
    shown = json.dumps({"stdout": "".join(f"line {number}\n" for number in range(1, 300_001))})
    offset = shown.index("line 250000")
    story = [
        says({"tool_calls": [call("run_command", command="seq -f 'line %.0f' 1 300000")]}),
        says({"tool_calls": [{"tool": "read_result", "args": {"call": 1, "offset": offset}}]}),
        says({"answer": "read", "confidence": "high"}),
    ]
    agent = {"id": "agent", "tool": "agent", "args": {"objective": "Count."}}
    async with serve(story) as agents:
        plan = await agents.plans.start([agent], options={"approveAll": True})
        view = await plan.ended()
        assert view["status"] == "completed", view["steps"]
        assert '{"call": 1, "offset": 4000}' in agents.prompts[1]
        assert "line 250000\\nline 250001" in agents.prompts[2]
        found = await written(plan, "agent")
    assert list(found) == ["agent.call_1"]
    assert found["agent.call_1"].endswith(b"line 299999\nline 300000\n")
