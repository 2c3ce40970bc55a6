"""The server dies while a command runs, and the worker does not: how it ended is told when the server is back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.conftest import Chaos
from tests.kit.driving import GO, statuses, work
from tests.kit.waiting import until
from tests.nightly import only_nightly

COMMAND = f"echo x >> begun; until [ -e {GO} ]; do sleep 0.05; done; echo x >> ended; exit "
GIVEN_UP = "Network error while completing activity"
"""What the worker's log says once the SDK no longer tries to hand over a result."""


@pytest.mark.parametrize("code", [only_nightly(0), only_nightly(3)])
async def test_a_command_that_ended_while_the_server_was_away_is_not_run_again(chaos: Chaos, code: int) -> None:
    await chaos.worker.up()
    args = {"command": f"{COMMAND}{code}"}
    slow: dict[str, Any] = {"id": "slow", "tool": "run_command", "args": args, "requiresApproval": False}
    slow["retry"] = {"attempts": 1}  # a failure that may be tried again is, whether it was told or not
    plan = await chaos.plans.start([slow, work("after", "slow")])
    begun, ended = (chaos.plans.workspace / name for name in ("begun", "ended"))
    await until(begun.exists, "the command runs")
    chaos.server.kill()
    chaos.plans.go()
    await until(ended.exists, "the command has ended")
    await until(lambda: GIVEN_UP in chaos.worker.log.read_text(), "the worker could not tell it")
    await chaos.server.up()
    view = await plan.ended()
    assert begun.read_text() == "x\n"
    assert not [entry for entry in view["log"] if "was lost" in entry["text"]]
    assert statuses(view) == (
        {"slow": "completed", "after": "completed"} if code == 0 else {"slow": "failed", "after": "blocked"}
    )
