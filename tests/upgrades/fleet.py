"""Plans in flight while the code is released three times: builds in directories of their own, worker processes.

Each build changes what a new plan does, behind a patch, as every release must. The whole story, with its figures:
`python -m tests.upgrades.fleet 100`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.apps.releases.at_versions import all_versions
from plansurvive.apps.releases.control import Drain, ramp, rollback
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal
from plansurvive.runtime.versions.routing import BadVersion, routing
from plansurvive.runtime.versions.version import Version
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import LEDGER, Plans, Started, work
from tests.kit.servers import development_server
from tests.kit.trees import copy_code
from tests.kit.waiting import until
from tests.workflows.agents import says

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("plansurvive", "plans", "runtime", "activities", "workflows", "features")
AT = "        run = self._started().run\n        own = own_steps(run)"
"""In `workflows/plan.py`: the first thing that a plan does."""
TALK = [says({"answer": "done", "confidence": "high"}, times=0)]


def copy(directory: Path, build: int) -> Path:
    """The code as release `build`: from the second on, a plan first sleeps, which older plans must not."""
    copy_code((*PACKAGES, "worker.py"), directory)
    plan = directory / "workflows" / "plan.py"
    text = plan.read_text()
    assert AT in text, "the change of a release no longer fits the code; adapt it"
    for number in range(2, build + 1):
        text = text.replace(
            AT, f'        if workflow.patched("release-{number}"):\n            await workflow.sleep(0.01)\n{AT}'
        )
    plan.write_text(text)
    return directory


def kinds(number: int) -> list[dict[str, Any]]:
    """The steps of a plan that is still on its way when releases come: by an approval, an agent, a map or a timer."""
    name = f"p{number}"
    gate = work(f"{name}-gate", requiresApproval=True)
    return [
        [work(f"{name}-a"), gate | {"dependsOn": [f"{name}-a"]}, work(f"{name}-b", f"{name}-gate")],
        [{"id": f"{name}-agent", "tool": "agent", "args": {"objective": "Say done."}}, gate],
        [
            work(f"{name}-each", args={"name": name + "-{{item}}"})
            | {"forEach": {"items": ["x", "y", "z"], "key": "@"}},
            gate,
        ],
        [
            {"id": f"{name}-timer", "tool": "sleep", "args": {"seconds": 15}},
            work(f"{name}-after", f"{name}-timer"),
            gate,
        ],
    ][number % 4]


@dataclass
class Fleet:
    """The server, the workers and the plans."""

    client: Client
    settings: Settings
    folder: Path
    plans: Plans
    environ: dict[str, str]
    stack: ExitStack
    started: list[Started] = field(default_factory=list)
    builds: list[str] = field(default_factory=list)

    async def release(self, number: int, percent: float = 100.0) -> tuple[Version, subprocess.Popen[bytes]]:
        """Start a worker of a build, and give its version new plans."""
        code = copy(self.folder / f"release-{number}", number)
        log = (self.folder / f"release-{number}.log").open("wb")
        command = [sys.executable, str(code / "worker.py"), "--version", "fleet"]
        worker = _process(command, self.environ, code, log)
        self.stack.callback(worker.wait)
        self.stack.callback(worker.kill)

        async def known() -> Version | None:
            assert worker.poll() is None, (self.folder / f"release-{number}.log").read_text()
            try:
                found = await all_versions(self.client, self.settings.task_queue, await routing(self.client, "fleet"))
            except BadVersion:
                return None
            return next(
                (each.version for each in found if each.workers and each.version.build not in self.builds), None
            )

        version: Version = await until(known, f"a worker of release {number} polls", patience=240)
        self.builds.append(version.build)
        await ramp(self.client, version, percent)
        return version, worker

    async def plain(self, code: Path, name: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a worker without a version. `more`: further variables."""
        log = (self.folder / f"{name}.log").open("wb")
        worker = _process([sys.executable, str(code / "worker.py")], self.environ | more, code, log)
        self.stack.callback(worker.wait)
        self.stack.callback(worker.kill)
        await until(lambda: "Listening" in (self.folder / f"{name}.log").read_text(), f"the {name} worker polls")
        return worker

    async def start(self, count: int) -> None:
        """Start plans of every kind, and wait until each awaits something."""
        numbers = range(len(self.started), len(self.started) + count)
        new = [await self.plans.start(kinds(number), title=f"plan {number}") for number in numbers]
        for plan in new:
            await plan.until(
                lambda view: any("awaiting" in each for each in view["steps"]), f"{plan.id} awaits a person"
            )
        self.started += new

    async def finish(self) -> Counter[str]:
        """Approve what awaits, in every plan; how they end."""
        for number, plan in enumerate(self.started):
            await plan.approve(f"p{number}-gate")
        return Counter([(await plan.ended())["status"] for plan in self.started])


def _process(command: list[str], environ: dict[str, str], code: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environ, cwd=code, stdout=log, stderr=log, start_new_session=True)


async def story(count: int) -> dict[str, Any]:
    """Three releases over `count` plans, one rollback; the figures. Raises AssertionError if a plan is lost."""
    async with fleet_of() as fleet:
        return await _releases(fleet, count, fleet.plans.workspace / LEDGER)


@asynccontextmanager
async def fleet_of() -> AsyncIterator[Fleet]:
    """A server, a scripted LLM and a workspace, and no worker yet."""
    with tempfile.TemporaryDirectory(prefix="plans-upgrades-") as place, ExitStack() as stack:
        folder = Path(place)
        workspace = folder / "workspace"
        workspace.mkdir()
        llm = stack.enter_context(ScriptedLlm(Script.of(TALK)))
        environ = {
            **{name: text for name, text in os.environ.items() if not name.startswith(("PLANS_", "TEMPORAL_"))},
            "PLANS_STATE_DIR": str(folder / "state"), "PLANS_WORKSPACES": str(workspace), "PLANS_MODEL": "demo",
            "PLANS_TOOLS": LEDGER_TOOLS,
            "OPENAI_BASE_URL": llm.url, "PLANS_GRACE": "5",
        }  # fmt: skip
        program = await find_temporal(Settings.read({"HOME": os.environ["HOME"]}), print)
        async with development_server(program, folder) as server:
            environ["TEMPORAL_ADDRESS"] = server.address
            settings = Settings.read(environ)
            client = await connect(settings)
            yield Fleet(client, settings, folder, Plans(client, settings.task_queue, workspace), environ, stack)


async def from_revision(fleet: Fleet, code: Path, count: int) -> Counter[str]:
    """Plans that a worker of other code began, without a version, ended by one of the tree; how they end."""
    old = await fleet.plain(code, "old")
    await fleet.start(count)
    old.kill()
    await asyncio.to_thread(old.wait)
    await fleet.plain(ROOT, "new")
    return await fleet.finish()


async def beside_revision(fleet: Fleet, code: Path, count: int) -> list[str]:
    """The steps with wrong values, of a plan that a worker of other code runs while one of the tree makes calls."""
    await fleet.plain(code, "old", PLANS_MAX_ACTIVITIES="1")
    steps = [work("gate", requiresApproval=True), *(work(f"s{number}", "gate", seconds=0.1) for number in range(count))]
    plan = await fleet.plans.start(steps)
    await plan.until_asked("gate")
    await fleet.plain(ROOT, "new")
    await plan.approve("gate")
    view = await plan.ended()
    calls = [event.activity_task_started_event_attributes.identity for event in await plan.events()]
    assert len({*filter(None, calls)}) == 2, "both workers have made calls"
    return [each["id"] for each in view["steps"] if (each.get("result") or {}).get("value") != each["id"]]


async def _releases(fleet: Fleet, count: int, ledger: Path) -> dict[str, Any]:
    began = time.monotonic()
    one, first = await fleet.release(1)
    await fleet.start(count // 3)
    two, _ = await fleet.release(2)
    await fleet.start(count // 3)
    three, _ = await fleet.release(3)
    await fleet.start(count - 2 * (count // 3))
    at_three = len(fleet.started)
    asked = time.monotonic()
    taken, where = await rollback(fleet.client, fleet.settings.task_queue, "fleet")
    took = time.monotonic() - asked
    assert (taken, where.current) == (three, two), "one call takes the release back"
    drain = Drain(fleet.client, fleet.settings.task_queue, one, lambda _: None)
    moved = await drain.move()
    assert moved, "plans of the first release were moved"
    assert not drain.refused, drain.refused
    await asyncio.wait_for(drain.wait(), 240)
    first.terminate()
    await asyncio.to_thread(first.wait)
    ended = await fleet.finish()
    entries = Counter(ledger.read_text().splitlines())
    twice = [line for line, times in entries.items() if line.startswith("end ") and times > 1]
    return {
        "plans": at_three, "ended": dict(ended), "moved": moved, "twice": twice,
        "rollback seconds": round(took, 2), "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


if __name__ == "__main__":
    print(asyncio.run(story(int(sys.argv[1]))))
    gc.collect()
    sys.stdout.flush()
    os._exit(0)
