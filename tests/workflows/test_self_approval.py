"""A command that connects to the Temporal server to approve a step of its own plan: the sandbox blocks it.

The attack is real: the SDK, the right address, the right message. Its control shows that it works where commands have
the network.
"""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.client import Client

from tests.kit.driving import Plans, step
from tests.kit.lacking import require_sandbox
from tests.nightly import only_nightly
from tests.workflows.conftest import MakeWorker

pytestmark = [pytest.mark.modes("plain"), pytest.mark.on_server("commands that call it")]

ATTACK = """
import asyncio, os, sys, time
from temporalio.client import Client

async def approve():
    client = await asyncio.wait_for(Client.connect(ADDRESS), 5)
    while mine not in [found.id async for found in client.list_workflows("WorkflowType = 'PlanWorkflow'")]:
        await asyncio.sleep(0.05)  # the server's index is behind
    await client.get_workflow_handle(mine).signal("approve", {"stepId": "gate", "by": "the boss"})
    print("approved", mine)

while not (mine := open("plan").read()):
    time.sleep(0.05)
print("told of the server:", [name for name in os.environ if name.startswith("TEMPORAL")])
asyncio.run(approve())
sys.stdout.flush()
os._exit(0)  # the SDK's threads do not always survive the end of the interpreter
"""


def steps(address: str, network: bool) -> list[dict[str, Any]]:
    """A plan with a step that needs approval, and a command that tries to approve it."""
    code = ATTACK.replace("ADDRESS", repr(address))
    args = {"code": code, "allowFailure": True, "timeout": 40, "network": network}
    return [
        {"id": "gate", "tool": "create_directory", "args": {"path": "made"}, "requiresApproval": True},
        {"id": "attack", "tool": "run_python", "args": args, "requiresApproval": False, "retry": {"attempts": 1}},
    ]


async def attacked(idle: Plans, client: Client, *, network: bool) -> tuple[dict[str, Any], str]:
    """The view after the attack, and the attack's output."""
    (idle.workspace / "plan").write_text("")
    started = await idle.start(steps(client.service_client.config.target_host, network))
    (idle.workspace / "plan").write_text(started.id)
    view = await started.until_status("attack", "completed", "failed")
    if network:
        view = await started.until_status("gate", "completed")
    else:
        await started.deny("gate")
        await started.ended()
    value = step(view, "attack")["result"]["value"]
    return view, value["stdout"] + value["stderr"]


@pytest.mark.parametrize("level", ["bwrap", only_nightly("landlock")])
async def test_no_command_approves_its_own_plan(
    make_worker: MakeWorker, idle: Plans, temporal_client: Client, level: str
) -> None:
    require_sandbox(level)
    async with make_worker(sandbox=level):
        view, said = await attacked(idle, temporal_client, network=False)
        assert (step(view, "gate")["awaiting"], "approved" in said) == ("approval", False)
        assert "told of the server: []" in said
        assert "Failed client connect" in said
        view, said = await attacked(idle, temporal_client, network=True)
        assert (step(view, "gate")["status"], "approved" in said) == ("completed", True)
