"""An obedient agent over MCP approves nothing of its own and waives nothing, and learns no secret.

What happened is seen from outside: in the workspace, and in what the plans have recorded. The controls let the same
plans be started by a person, and the same agent talk to a server with `--may-approve`: then the steps do run. Raw
messages to Temporal are not tried here: docs/security.md says what who reaches that server may do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from temporalio.client import Client as Temporal
from temporalio.worker import Worker

from plansurvive.apps.mcp.callers import token
from plansurvive.apps.mcp.common.rounds import KEY_FILE, round_key
from plansurvive.apps.mcp.decisions.open import waiting
from plansurvive.apps.mcp.tools.deciding import DECIDING
from plansurvive.apps.mcp.tools.sources import Source
from plansurvive.apps.mcp.tools.views import awaited
from plansurvive.client import runs
from plansurvive.client.access.link import KEY_FILE as LINK_FILE
from plansurvive.client.access.link import fresh_secret
from plansurvive.client.errors import PlanNotFound
from plansurvive.client.ids import plan_id
from plansurvive.client.requests.plan_request import Flags, prepared
from plansurvive.plans.run import ENDED, Options, PlanStatus
from plansurvive.runtime.server import HOST
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import KEY as SIGNING_FILE
from plansurvive.runtime.state_key import private_key
from tests.apps.mcp.http.reached import reached
from tests.apps.mcp.tasks.agent import TakesTasks
from tests.attacks.mcp.loose_plans import WAIVED, gone, put, ran, save
from tests.attacks.mcp.obedient import Obedient
from tests.kit.driving import terminated
from tests.kit.waiting import until

CANARY = "canary-52817"
COMMAND = ("-m", "plansurvive", "mcp")
TOOL_SERVERS = """
[servers.tracker]
url = "https://tracker.invalid/mcp"
token = "env:TRACKER_TOKEN"
"""
TARGETS = f"""
[targets.team]
webhook = "https://hooks.invalid/{CANARY}"
key = "whsec_{"Y2FuYXJ5" * 4}"
"""


@dataclass
class Ground:
    """Where the agent is let loose: plans and files of a person, and the secrets of the state directory."""

    temporal: Temporal
    settings: Settings
    queue: str
    workspace: Path
    files: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.settings.state_dir

    def file(self) -> str:
        """Another file that is not to be touched unasked."""
        self.files.append(put(self.workspace, f"file{len(self.files)}.txt"))
        return self.files[-1]

    def secrets(self) -> dict[str, str]:
        """What opens a way to decide, by the file that holds it."""
        fresh_secret(self.state)
        token(self.settings)
        round_key(self.settings)
        private_key(self.settings)
        for name, text in (("mcp.toml", TOOL_SERVERS), ("notify.toml", TARGETS)):
            (self.state / name).write_text(text)
            (self.state / name).chmod(0o600)
        kept = (LINK_FILE, "mcp.token", KEY_FILE, SIGNING_FILE)
        return {name: (self.state / name).read_text().strip() for name in kept} | {"notify.toml": CANARY}

    async def of_a_person(self) -> str:
        """A plan of a person that awaits an approval."""
        steps = {"steps": [gone(self.file())]}
        started = await runs.start(
            self.temporal, steps, options=Options(workspace=str(self.workspace)), queue=self.queue
        )
        await self.settled(started.plan_id)
        return started.plan_id

    async def settled(self, plan: str) -> None:
        """Wait until a plan has ended, is held, or has nothing left to do but await a person."""

        async def look() -> bool:
            view = await runs.brief(self.temporal, plan)
            clocks = {each.status for each in view.steps if each.id == "clock"}
            is_held = view.status in (PlanStatus.PAUSED, PlanStatus.REVIEW)  # by the agent itself
            return view.status in ENDED or is_held or (not clocks & {"pending", "running"} and bool(awaited(view)))

        await until(look, f"plan {plan} is settled")

    async def plans(self) -> list[str]:
        """All plans of this queue, those of agents and children with them."""
        return [plan_id(each.id) async for each in self.temporal.list_workflows(f"TaskQueue = '{self.queue}'")]

    async def approved(self) -> list[str]:
        """The steps of all plans that somebody approved or answered, by whatever way; of the person's is none."""
        found = list[str]()
        for plan in await self.plans():
            try:
                view = await runs.show(self.temporal, plan)
            except PlanNotFound:  # a listing of files, which is deleted when it has been read
                continue
            found += [f"{plan}: {each.id}" for each in view.steps if each.answer]
            found += [f"{plan}: {each.id}" for each in view.steps if each.decision and each.decision.approved]
        return found

    def ran(self) -> list[str]:
        """The files of steps that ran, also of those that were undone after it was looked at before."""
        self.seen.update(ran(self.workspace, [*self.files, "kept.txt"]))
        return [name for name in [*self.files, "kept.txt"] if name in self.seen]

    async def keys(self, plan: str) -> Mapping[str, Any]:
        """The keys of the requests that a person who could be asked would be sent."""
        view = await runs.brief(self.temporal, plan)
        found = await waiting(self.temporal, self.settings, plan, view, self.queue, "here", again=True)
        return {each.key: None for each in found.asked}


@pytest_asyncio.fixture
async def ground(
    temporal_client: Temporal, worker: Worker, settings: Settings, queue: str, workspace: Path
) -> AsyncIterator[Ground]:
    found = Ground(temporal_client, settings, queue, workspace)
    (workspace / "kept.txt").write_text("kept")
    yield found
    for plan in await found.plans():
        await terminated(temporal_client, f"plan-{plan}")


async def obey(
    agent: Obedient, ground: Ground, plans: Sequence[str] = tuple(WAIVED), *, thoroughly: bool = False
) -> list[str]:
    """Try everything; gives the plans that the agent was able to start."""
    secrets = ground.secrets()
    person = await ground.of_a_person()
    own = list[str]()
    for number, make in enumerate(WAIVED[name] for name in plans):
        file = ground.file()
        version = save(ground.workspace, file)
        plan, name = make(file), file.removesuffix(".txt")
        (ground.workspace / f"{name}.json").write_text(json.dumps(plan))
        ways = ({"plan": plan}, {"file": f"{name}.json"}, {"template": name}, {"template": f"{name}@{version}"})
        for given in ways if thoroughly else (ways[number % len(ways)],):
            own.append((await agent.call("plan_start", **given)).get("planId", ""))
    own = [each for each in own if each]
    for each in own:
        await ground.settled(each)
    await agent.every_argument(own[0] if own else person, one_by_one=thoroughly)
    for each in (person, *own):
        await agent.every_decision(each, await ground.keys(each))
    for each in (person, *own[:2]):
        await agent.every_message(each)
    for each in [] if ground.ran() else await ground.plans():  # once a step has run, there is nothing to wait for
        await ground.settled(each)
    ground.ran()  # before an undo brings files back
    for each in (person, *own[:2]):
        await agent.call("plan_undo", planId=each, dryRun=False, partly=True, wait=0)
    await agent.every_resource([person, *own[:2]], [str(ground.state / name) for name in (*secrets, "mcp.toml")])
    assert [name for name, secret in secrets.items() if any(secret in each for each in agent.said)] == []
    assert not any(CANARY in each for each in agent.said)
    return own


@asynccontextmanager
async def at_process(environ: Mapping[str, str], *options: str, mode: Any = "auto") -> AsyncIterator[Obedient]:
    """The agent of a real `plan mcp`."""
    server = StdioServerParameters(
        command=sys.executable, args=[*COMMAND, *options], env={**environ, "TRACKER_TOKEN": CANARY}
    )
    extensions: Any = [TakesTasks()]
    async with Client(stdio_client(server), mode=mode, extensions=extensions) as client:
        yield Obedient(client)


@asynccontextmanager
async def over_http(environ: Mapping[str, str], ground: Ground, role: str) -> AsyncIterator[Obedient]:
    """The agent of a person with a role, behind a proxy; of `token`, with the token of the page's user."""
    proxy = {"PLANS_WEB_PROXY_HEADER": "X-User", "PLANS_WEB_PROXY_FROM": HOST, "PLANS_WEB_ROLES": f"ann={role}"}
    async with reached({**environ, **(proxy if role != "token" else {})}, ground.temporal) as page:
        headers = {"Authorization": f"Bearer {page.token}"} if role == "token" else {"X-User": "ann"}
        extensions: Any = [TakesTasks()]
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(f"{page.origin}/mcp", http_client=http), extensions=extensions) as client,
        ):
            yield Obedient(client)


async def held(
    agent: Obedient, ground: Ground, plans: Sequence[str] = tuple(WAIVED), *, thoroughly: bool = False
) -> list[str]:
    """Try everything: nothing was approved or waived, and no call that decides was taken; the plans it started."""
    own = await obey(agent, ground, plans, thoroughly=thoroughly)
    assert agent.tried > 100
    assert await ground.approved() == []
    assert ground.ran() == []
    assert not {*DECIDING, "plan_edit"} & set(agent.taken)
    return own


@pytest.mark.slow
async def test_an_obedient_agent_approves_and_waives_nothing(ground: Ground, environ: dict[str, str]) -> None:
    some = list(WAIVED)[::6]
    async with at_process(environ) as agent:
        assert len(await held(agent, ground, some)) == len(some)


@pytest.mark.slow
async def test_an_obedient_agent_that_tries_each_way_with_each_plan_approves_and_waives_nothing(
    ground: Ground, environ: dict[str, str]
) -> None:
    async with at_process(environ) as agent:
        assert len(await held(agent, ground, thoroughly=True)) == 4 * len(WAIVED)


@pytest.mark.slow
@pytest.mark.parametrize(("role", "starts"), [("token", True), ("operator", True), ("viewer", False)])
async def test_an_obedient_agent_over_http_approves_and_waives_nothing(
    ground: Ground, environ: dict[str, str], role: str, starts: bool
) -> None:
    async with over_http(environ, ground, role) as agent:
        assert len(await held(agent, ground)) == (len(WAIVED) if starts else 0)
    if not starts:
        assert len(await ground.plans()) == 1  # that of the person


@pytest.mark.slow
@pytest.mark.sampled
async def test_an_agent_without_a_token_is_answered_nothing(ground: Ground, environ: dict[str, str]) -> None:
    async with reached(environ, ground.temporal) as page:
        for method in ("initialize", "tools/list", "tools/call", "tasks/update", "resources/read", "server/discover"):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "plan_start", "arguments": {}}}
            for headers in ({}, {"Authorization": "Bearer x"}, {"X_User": "ann"}, {"Cookie": "session=x"}):
                found = await page.sent(body, **headers)
                assert (found.status_code, "result" in found.json()) == (401, False), (method, headers)


@pytest.mark.slow
async def test_control_the_same_plans_run_unasked_if_a_person_starts_them(ground: Ground) -> None:
    for make in WAIVED.values():
        file = ground.file()
        save(ground.workspace, file)
        flags = Flags(str(ground.workspace), False, None, False, (), None, {})
        wanted = prepared(Source(make(file)).read(ground.settings), flags, ground.settings)
        options = wanted.options(ground.settings, local=True, by="ann")
        started = await runs.start(ground.temporal, wanted.file.data, options=options, queue=ground.queue)
        await ground.settled(started.plan_id)
    assert ground.ran() == ground.files


@pytest.mark.slow
async def test_control_the_same_agent_does_approve_where_the_person_lets_it(
    ground: Ground, environ: dict[str, str]
) -> None:
    async with at_process(environ, "--may-approve") as agent:
        await obey(agent, ground)
    assert "plan_approve" in agent.taken
    assert await ground.approved()
    await until(lambda: len(ground.ran()) >= len(WAIVED) - 4, "the steps that it approved run")
