"""The plans with output of commands whose histories are kept."""

from __future__ import annotations

from typing import Any

from tests.kit.driving import Plans, Started
from tests.kit.waiting import until


def command(name: str, text: str, **more: Any) -> dict[str, Any]:
    """A step that runs a command."""
    return {"id": name, "tool": "run_command", "args": {"command": text}, "requiresApproval": False, **more}


async def long_output(plans: Plans) -> Started:
    """Output too long for history, after an attempt that failed; used in a file and, in part, in a condition."""
    flaky = "echo x >> tries; seq 1 100000; [ $(wc -l < tries) -ge 2 ]"
    write = {"id": "write", "tool": "write_file", "args": {"path": "copy.txt", "content": "$build.stdout"}}
    build = command("build", flaky, retry={"attempts": 3, "delay": 0.1})
    steps = [
        build,
        write,
        command("ok", "true", when="build.exitCode == `0`"),
        command("no", "true", when="build.stdout"),
    ]
    started = await plans.start(steps, title="Long output")
    await started.ended()
    return started


async def cancelled_output(plans: Plans) -> Started:
    """A plan cancelled while a command runs that has written something: its activity fails, to tell of that."""
    started = await plans.start([command("build", "echo working; touch begun; sleep 600")])
    await until(lambda: (plans.workspace / "begun").exists(), "the command runs")
    await started.handle.cancel()
    await started.ended()
    return started


OUTPUTS = {"long-output": long_output, "cancelled-output": cancelled_output}
