"""kill -9 of the worker, of the agent and of both, while a coding agent works and while it waits for a person."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError

from tests.chaos.agent_record import Record, findings
from tests.chaos.conftest import KILLS, Chaos
from tests.features.coding_agents.scene import AGAIN, PROGRAM, Scene, agent_of, asked, code, whole_lines
from tests.features.tool_servers.real.real import installed_packages, node_program
from tests.kit.driving import Started, step
from tests.kit.waiting import until
from tests.nightly import only_nightly, only_sampled, sampled

pytestmark = [pytest.mark.slow, pytest.mark.uses("agents", "children", "coding_agents")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the agents' scripts and homes are."""
    return tmp_path / "agent"


def scene_of(chaos: Chaos, place: Path, *prompts: list[dict[str, Any]], **more: Any) -> Scene:
    """The agent `scripted` of the worker, which does this."""
    return scenes_of(chaos, place, ["scripted"], *prompts, **more)[0]


def scenes_of(
    chaos: Chaos, place: Path, names: Sequence[str], *prompts: list[dict[str, Any]], **more: Any
) -> list[Scene]:
    """Agents of the worker, which all do this, each with a home and a script of its own."""
    known = {}
    for name in names:
        script = place / name / "script.json"
        (place / name / "home").mkdir(parents=True)
        script.write_text(json.dumps({"prompts": prompts, **more}))
        known[name] = [sys.executable, "-I", "-S", str(PROGRAM), str(script)]
    configure(chaos, place, known, [str(PROGRAM)])
    return [Scene(chaos.plans.client, None, place / name) for name in names]  # type: ignore[arg-type]


def configure(chaos: Chaos, place: Path, commands: Mapping[str, list[str]], read: list[str]) -> None:
    """Write agents.toml."""
    file = place / "agents.toml"
    file.write_text(
        "\n".join(
            f"[agents.{name}]\ncommand = {json.dumps(command)}\nhome = {json.dumps(str(place / name / 'home'))}\n"
            f'read = {json.dumps([*read, str(place / name)])}\napprove = "never"\n'
            for name, command in commands.items()
        )
    )
    file.chmod(0o600)
    chaos.worker.environ["PLANS_AGENTS"] = str(file)


async def begun(chaos: Chaos, scenes: list[Scene], chance: random.Random) -> list[Run]:
    """A plan for each agent, in a workspace of its own."""
    runs = []
    for scene in scenes:
        workspace = chaos.plans.workspace / scene.place.name
        workspace.mkdir()
        plans = replace(chaos.plans, workspace=workspace, ceiling=CEILING)
        runs.append(Run(scene, await plans.start([code(agent=scene.place.name)]), workspace, chance))
    return runs


ROUNDS = 3
WORK: list[dict[str, Any]] = [
    action
    for number in range(ROUNDS)
    for action in (
        {"call": f"look {number}", "kind": "search"},
        {"write": f"written-{number}.txt", "content": f"{number}\n" * 100},
        {"run": "sleep 0.1; echo {unique} >> ran.txt"},
        {"ask": f"own-{number}", "yes": [{"say": f"{number};"}], "no": [{"say": "denied;"}]},
    )
]
"""What an agent does in one request: through our tools, and by itself."""
MESSAGES = 3 + 7 * ROUNDS
"""What it receives for that at least."""
AT_A_TIME = 5
CEILING = timedelta(minutes=20)
"""Of one plan: a worker that starts again on a busy machine takes a minute."""


@dataclass
class Run:
    """A plan whose agent works. What its agent asks for is decided by chance, unless `waits`."""

    scene: Scene
    plan: Started
    workspace: Path
    chance: random.Random
    waits: bool = False
    kills: int = 0
    decided: set[str] = field(default_factory=set)

    @property
    def agent(self) -> Started:
        """The workflow of its agent."""
        return agent_of(self.plan)

    async def has_come_to(self, size: int) -> bool:
        """Whether its agent has received so many messages, or receives no more."""
        return len(self.scene.log()) >= size or await self.is_over()

    async def is_over(self) -> bool:
        """Whether the agent has done all of its work, or was given up."""
        at = [*self.scene.home.glob("*.at")]
        if at and at[0].read_text() == str(len(WORK)):
            return True
        with suppress(RPCError):  # the server is busy: it is asked again
            return (await self.plan.handle.describe()).status is not WorkflowExecutionStatus.RUNNING
        return False

    async def open(self) -> list[dict[str, Any]]:
        """What its agent asks for now; nothing where no worker answers."""
        with suppress(RPCError):
            return [each for each in (await self.agent.view())["pending"] if each["stepId"] not in self.decided]
        return []

    async def decide(self, items: list[dict[str, Any]]) -> None:
        """As a person would, who may be at it while no worker runs."""
        for item in items:
            self.decided.add(item["stepId"])
            with suppress(RPCError):  # it has ended
                may = self.chance.random() < 0.8
                await (self.agent.approve if may else self.agent.deny)(item["stepId"], digest=item["digest"])

    def kill(self) -> None:
        """kill -9 of its agent, if that runs."""
        self.kills += bool(kill_agents(self.scene.place))

    async def record(self) -> Record:
        """What came of it, once its plan has ended."""
        view = await self.plan.ended()
        result, ran = step(view, "code")["result"], self.workspace / "ran.txt"
        began = len(self.scene.log("initialize"))
        return Record(
            transcript=self.scene.log(), ledger=(await self.agent.view())["steps"],
            lines=ran.read_text().split() if ran.exists() else [], code=result.get("code") or "",
            kills=self.kills, restarts=began - 1, files=set((result.get("value") or {}).get("files", [])),
        )  # fmt: skip


@asynccontextmanager
async def people(runs: list[Run]) -> AsyncIterator[None]:
    """Within the block what the agents ask for is decided, but for the runs that wait."""

    async def at_work(run: Run) -> None:
        async def undecided() -> list[dict[str, Any]]:
            return [] if run.waits else await run.open()

        while True:
            await run.decide(await until(undecided, "it asks", patience=CEILING.total_seconds(), every=0.5))

    working = [asyncio.create_task(at_work(run)) for run in runs]
    try:
        yield
    finally:
        for each in working:
            each.cancel()
        await asyncio.gather(*working, return_exceptions=True)


@pytest.mark.parametrize("number", sampled(range(10), 0))
async def test_nothing_is_done_twice_through_our_tools_whenever_worker_and_agent_are_killed(
    number: int, chaos: Chaos, place: Path
) -> None:
    chance = random.Random(f"{chaos.seed}-{number}")
    scenes = scenes_of(chaos, place, [f"agent{each}" for each in range(AT_A_TIME)], WORK, continues=True)
    await chaos.worker.up()
    runs = await begun(chaos, scenes, chance)
    async with people(runs):
        victims = chance.sample(["agent", "worker", "both"], 3)
        for size, victim in zip(sorted(chance.sample(range(2, MESSAGES), 3)), victims, strict=True):
            await one_kill(chaos, runs, size, victim, chance)
        records = [await run.record() for run in runs]
    assert {run.plan.id: found for run, record in zip(runs, records, strict=True) if (found := findings(record))} == {}
    for run, record in zip(runs, records, strict=True):
        for each in range(ROUNDS) if not record.code else ():
            assert (run.workspace / f"written-{each}.txt").read_text() == f"{each}\n" * 100
        print(run.plan.id, f"kills={run.kills} restarts={record.restarts} code={record.code or 'completed'}")


async def one_kill(chaos: Chaos, runs: list[Run], size: int, victim: str, chance: random.Random) -> None:
    """Kill worker, agents or both: once an agent has received so much, or while it waits for a person. What it asks
    for then is decided while no worker runs, or after that.
    """
    at = chance.choice([run for run in runs if not await run.is_over()] or runs)
    await until(lambda: at.has_come_to(size), "so far", patience=CEILING.total_seconds())
    at.waits = chance.random() < 0.5
    items: list[dict[str, Any]] = []

    async def asks() -> bool:
        nonlocal items
        return bool(items := await at.open()) or await at.is_over()

    if at.waits:
        await until(asks, "it waits for a person", patience=CEILING.total_seconds(), every=0.2)
    if victim != "worker":
        for run in runs:
            if run is at or chance.random() < 0.4:
                run.kill()
    if victim != "agent":
        chaos.worker.kill()
    if chance.random() < 0.5:
        await at.decide(items)
    if victim != "agent":
        await chaos.worker.up()
    at.waits = False


def kill_agents(place: Path) -> int:
    """kill -9 of the processes of the scripted agent whose script is there. Returns how many."""
    script, killed = str(place / "script.json").encode(), 0
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if script in words:
            with suppress(ProcessLookupError):  # it has ended with the one before
                os.kill(int(entry.name), signal.SIGKILL)
                killed += 1
    return killed


EXAMPLE = Path(__file__).parents[1] / "features/coding_agents/example"
"""The SDK for JavaScript, whose example agent can load no session."""


@pytest.mark.parametrize("number", sampled(range(3), 0))
async def test_the_example_agent_for_javascript_is_sent_its_request_once_and_is_lost_with_its_process(
    number: int, chaos: Chaos, place: Path
) -> None:
    chance = random.Random(f"{chaos.seed}-{number}")
    packages, node = installed_packages(Path(os.environ["HOME"]) / ".cache/plans/tool-servers", EXAMPLE), node_program()
    program = packages / "node_modules/@agentclientprotocol/sdk/dist/examples/agent.js"
    line = f"tee -a $HOME/received.jsonl | {node} {program} $0"
    names = [f"agent{each}" for each in range(AT_A_TIME)]
    scenes = [Scene(chaos.plans.client, None, place / name) for name in names]  # type: ignore[arg-type]
    for scene in scenes:
        scene.home.mkdir(parents=True)
    commands = {name: ["/bin/sh", "-c", line, str(place / name / "script.json")] for name in names}
    configure(chaos, place, commands, [str(packages), str(node)])
    await chaos.worker.up()
    runs = await begun(chaos, scenes, chance)
    at, wanted = runs[0], ["its request", "a question", "a decision"][number]
    victim = chance.choice(["agent", "worker", "both"])

    async def has_come() -> bool:
        if wanted == "a question":
            return bool(await at.open())
        return len(received(at)) >= (3 if wanted == "its request" else 4)

    at.waits = wanted == "a question"
    async with people(runs):
        await until(has_come, f"the agent has got {wanted}")
        for run in runs if victim != "worker" else ():
            if run is at or chance.random() < 0.5:
                run.kill()
        if victim != "agent":
            chaos.worker.kill()
            await chaos.worker.up()
        at.waits = False
        views = [await run.plan.ended() for run in runs]
    for run, view in zip(runs, views, strict=True):
        prompts = [each["params"]["sessionId"] for each in received(run) if each.get("method") == "session/prompt"]
        result, agent = step(view, "code")["result"], await run.agent.view()
        assert len(prompts) == len(set(prompts)) <= 1
        assert result.get("code", "") in ("", "AGENT_LOST"), result
        if victim == "agent" and not run.kills:
            assert result["ok"], result
        given = [each["result"]["outcome"]["optionId"] for each in received(run) if "outcome" in each.get("result", {})]
        decided = [each["status"] for each in agent["steps"] if each["tool"] == "coding_agent.edit"]
        assert given == [{"completed": "allow", "skipped": "reject"}[each] for each in decided][: len(given)]
        print(run.plan.id, f"kills={run.kills} code={result.get('code') or 'completed'}")


def received(run: Run) -> list[dict[str, Any]]:
    """What an agent was sent."""
    return whole_lines(run.scene.home / "received.jsonl")


@pytest.mark.parametrize("kills", [only_sampled(2), only_nightly(KILLS)])
async def test_the_request_is_sent_once_however_often_worker_and_agent_are_killed(
    chaos: Chaos, place: Path, kills: int
) -> None:
    go = chaos.plans.workspace / "go"
    work = [{"until": str(go)}, {"make": str(chaos.plans.workspace / "made.txt"), "content": "x"}, {"say": "done"}]
    scene = scene_of(chaos, place, work)
    await chaos.worker.up()
    plan = await chaos.plans.start([code()])
    for number in range(kills):
        await until(lambda number=number: len(scene.prompts) == number + 1, "the agent works")  # type: ignore[misc]
        if number % 2:
            kill_agents(scene.place)
        if number != 1:
            chaos.worker.kill()
            await chaos.worker.up()
    await until(lambda: len(scene.prompts) == kills + 1, "the agent works again")
    go.write_text("")
    view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "done"
    assert scene.prompts == ["Fix the test.", *[AGAIN] * kills]
    assert {each["sessionId"] for each in scene.log("session/prompt")} == {"session-1"}
    assert len(scene.log("session/new")) == 1


async def test_a_permission_asked_before_a_kill_is_asked_once_and_counts_after_it(chaos: Chaos, place: Path) -> None:
    ask = {"ask": "make test", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}
    scene = scene_of(chaos, place, [ask])
    await chaos.worker.up()
    plan = await chaos.plans.start([code()])
    agent, item = await asked(plan)
    chaos.worker.kill()
    await agent_of(plan).approve(item["stepId"], digest=item["digest"])
    await chaos.worker.up()
    view = await plan.ended()
    assert step(view, "code")["result"]["value"]["text"] == "ran"
    assert scene.chosen() == ["yes"]
    permissions = [each for each in (await agent.view())["steps"] if each["tool"] == "coding_agent.execute"]
    assert len(permissions) == 1
