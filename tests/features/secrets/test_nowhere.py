"""A secret in use, looked for in every place that a plan leaves something: only the tool itself has it.

The control is the same plan with the value written into it instead of the name: there most places have it.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.message import Message
from temporalio.client import Client, Schedule, ScheduleActionStartWorkflow, ScheduleSpec

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.values.spellings import spellings
from plansurvive.apps.mcp.common.host import Host
from plansurvive.features.keys.sealing import plain_texts, ring_of
from plansurvive.runtime.connect import Connection, Origin, connect
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.activities.sites import Site, serve
from tests.apps.mcp.agents import agent_of
from tests.apps.web.page_client import browsing, service_for
from tests.client.cli.command import line_with, plan, running
from tests.features.keys.rings import key, ring_file
from tests.features.secrets.secret_files import private, write_secrets
from tests.kit.driving import GO, Plans, Started, statuses
from tests.kit.servers import development_server
from tests.kit.sinks import Sink, targets_file, webhook_sink
from tests.kit.waiting import until
from tests.workflows.agents import call, says

TOOLS = str(Path(__file__).parent / "echo_tools.py")
VALUE = "canary/Secret+of&the night-7f3a"
NAME = "{{secret.TOKEN}}"
LEAKS = {
    "history of the plan", "history of the child plan", "history of the agent", "schedule", "value store",
    "effect log", "summaries", "webhook", "prompts of the LLM", "plan show", "plan show --json", "plan summary",
    "plan logs", "plan pending", "plan pending --json", "page of the plan", "page of a step", "page of a value",
    "inbox", "page of a decision", "MCP plan_pending", "log of the worker", "queries", "database of the server",
    "plan step in progress",
}  # fmt: skip
"""Where the value is found if it is written into the plan: what the search can find at all."""
SILENT = {
    "command lines", "environments", "descriptions", "plan list", "plan graph", "plan history", "plan why",
    "plan check", "plan secrets list", "plan secrets check", "plan tools --json", "plan doctor", "page of plans",
    "page of tools", "page of agents", "MCP plan_show", "MCP plan_tools", "MCP resources",
}  # fmt: skip
"""Where it has no reason to be in any case, and must not be."""
KINDS = {"PlanWorkflow": "the child plan", "AgentWorkflow": "the agent"}


def steps(token: str, site: Site) -> list[dict[str, Any]]:
    """A plan that uses the token in every way. `token`: its name, or in the control its value."""
    script = (
        'printf "out %s\\n" "$T"; printf "err %s\\n" "$T" >&2; printf %s "$T" | base64;'
        f" while [ ! -e {GO} ]; do sleep 0.05; done; exit 0"
    )
    once = {"retry": {"attempts": 1}, "critical": False}
    return [
        {"id": "said", "tool": "echo", "args": {"token": token}},
        {"id": "fails", "tool": "echo", "args": {"token": token, "how": "fails"}, **once},
        {"id": "breaks", "tool": "echo", "args": {"token": token, "how": "breaks"}, **once},
        {"id": "large", "tool": "echo", "args": {"token": f"Bearer {token}", "how": "large"}},
        {"id": "once", "tool": "echo", "args": {"token": token}, "repeatable": False},
        {"id": "shell", "tool": "run_command", "args": {"command": script, "env": {"T": token}},
         "requiresApproval": False},
        {"id": "web", "tool": "http_request", "requiresApproval": False,
         "args": {"url": f"{site.url}/status/418", "headers": {"X-Token": token}}, **once},
        {"id": "child", "tool": "plan", "args": {"steps": [{"id": "in", "tool": "echo", "args": {"token": token}}]}},
        {"id": "helper", "tool": "agent", "args": {"objective": "Say it.", "tools": ["echo"]}},
        {"id": "uses", "tool": "echo", "args": {"token": "$large"}, "dependsOn": ["said"], "critical": False},
        {"id": "asked", "tool": "echo", "args": {"token": token}, "requiresApproval": True},
        {"id": "who", "tool": "ask", "args": {"question": "Is it {{said.token}}?"}},
    ]  # fmt: skip


@dataclass
class Lived:
    """A plan with the secret, while it waits and after its end, and everything that was seen of it."""

    environ: dict[str, str]
    settings: Settings
    client: Client
    started: Started
    sink: Sink
    llm: ScriptedLlm
    site: Site
    token: str
    file: Path
    database: Path
    found: dict[str, bytes]

    def add(self, place: str, *given: Any) -> None:
        """What was found in a place; of a message of the server also what is encrypted in it."""
        ring = ring_of(self.settings)
        given = (*given, *(text for each in given if isinstance(each, Message) for text in plain_texts(each, ring)))
        given = tuple(each.SerializeToString() if isinstance(each, Message) else each for each in given)
        parts = [each if isinstance(each, bytes) else str(each).encode() for each in given]
        self.found[place] = b"\0".join([self.found.get(place, b""), *parts])

    async def commands(self, *rows: tuple[str, ...]) -> None:
        """What commands print, on both streams."""
        for words in rows:
            ended = await plan(self.environ, *words)
            shown = [word for word in words if word not in (self.started.id, "shell", "said", str(self.file))]
            self.add(f"plan {' '.join(shown)}", ended.out, ended.err)


@asynccontextmanager
async def living(
    environ: dict[str, str], tmp_path: Path, workspace: Path, token: str, database: Path
) -> AsyncIterator[tuple[Lived, asyncio.subprocess.Process]]:
    """The plan, begun with a worker of its own process."""
    state = Path(environ["PLANS_STATE_DIR"])
    private(state / "token", VALUE)
    answers = [
        says({"tool_calls": [call("echo", token=token)]}),
        says({"answer": "It is said.", "confidence": "high"}),
    ]
    with serve() as site, webhook_sink() as sink, ScriptedLlm(Script.of(answers)) as llm:
        host = site.url.partition("://")[2].partition("/")[0]
        tools = ["echo", "run_command", "http_request"]
        write_secrets(state, TOKEN={"source": "file:token", "tools": tools, "hosts": [host], "models": True})
        if token == VALUE:  # the control: the worker does not know it
            (state / "secrets.toml").unlink()
        targets_file(state / "notify.toml", hook=sink.url)
        environ = environ | {
            "PLANS_TOOLS": TOOLS, "PLANS_INLINE_BYTES": "1024", "PLANS_HTTP_ALLOW": host, "OPENAI_BASE_URL": llm.url,
            "PLANS_MODEL": "demo", "PLANS_AUTO_WORKER": "off", "PLANS_SANDBOX": "off",
        }  # fmt: skip
        settings = Settings.read(environ)
        client = await connect(settings)
        async with running(environ, "worker") as worker:
            await line_with(worker, "Listening")
            written = {"title": "uses a token", "steps": steps(token, site), "notify": "hook"}
            file = tmp_path / "plan.json"
            file.write_text(json.dumps(written))
            plans = Plans(client, settings.task_queue, workspace)
            started = await plans.start_with(
                {"plan": written, "options": {"workspace": str(workspace), "waivers": True}}
            )
            lived = Lived(environ, settings, client, started, sink, llm, site, token, file, database, {})
            yield lived, worker
            (workspace / GO).touch()


async def look_while_it_waits(lived: Lived) -> None:
    """What people, programs and other processes see while a person is to decide."""
    name = lived.started.id
    view = await lived.started.until_asked("asked")
    await lived.started.until_asked("who")
    for step_id in ("said", "fails", "breaks", "large", "once", "child", "helper"):
        view = await lived.started.until_status(step_id, "completed", "failed")
    lived.add("queries", view, await lived.started.handle.query("text"))
    await until(lambda: lived.sink.events, "the webhook is told")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, variables = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:
            continue
        lived.add("command lines", words)
        if b"\0T=" not in b"\0" + variables:  # the tool's own processes have it
            lived.add("environments", variables)

    async def is_logged() -> bool:
        return "err " in (await plan(lived.environ, "logs", name, "shell")).out

    await until(is_logged, "what the running command has written so far has arrived")
    await lived.commands(
        ("pending", name), ("pending", name, "--json"), ("show", name), ("show", name, "--json"), ("list",),
        ("graph", name), ("logs", name, "shell"), ("why", name, "said"), ("check", str(lived.file)),
        ("secrets", "list"), ("secrets", "check"), ("tools", "--json"), ("doctor",),
    )  # fmt: skip
    described = await lived.started.handle.describe()
    lived.add("plan step in progress", described.raw_description)
    await pages(lived)
    await mcp(lived)


async def pages(lived: Lived) -> None:
    """The web page."""
    name = lived.started.id.removeprefix("plan-")
    rows = {
        "page of plans": "/", "page of the plan": f"/plans/{name}", "page of a step": f"/plans/{name}/steps/said",
        "page of a value": f"/plans/{name}/value/large", "inbox": "/inbox", "page of tools": "/tools",
        "page of a decision": f"/plans/{name}/steps/asked/decide", "page of agents": "/agents",
    }  # fmt: skip
    async with browsing(service_for(lived.settings, lived.client, lived.environ)) as browser:
        for place, path in rows.items():
            answer = await browser.get(path)
            assert answer.status_code == 200, (path, answer.status_code)
            lived.add(place, answer.content)


async def mcp(lived: Lived) -> None:
    """What agents are told by our MCP server."""

    async def connecting() -> Connection:
        return Connection(lived.client, "tests", Origin.CONFIGURED)

    host = Host(lived.settings, lived.environ, "ann", connecting=connecting)
    async with agent_of(host) as agent:
        for tool, args in (("plan_show", {"plan": lived.started.id}), ("plan_pending", {}), ("plan_tools", {})):
            found = await agent.call_tool(tool, args)
            lived.add(f"MCP {tool}", found.model_dump_json())
        lived.add("MCP resources", (await agent.read_resource(f"plan://{lived.started.id}")).model_dump_json())


async def look_after_its_end(lived: Lived, worker: asyncio.subprocess.Process) -> None:
    """What is kept."""
    client, name = lived.client, lived.started.id
    await lived.started.approve("asked")
    await lived.started.signal("answer", {"stepId": "who", "value": "yes"})
    view = await lived.started.ended()
    assert statuses(view) == {
        each: "failed" if each in ("fails", "breaks", "web", "uses") else "completed" for each in statuses(view)
    }, statuses(view)
    action = ScheduleActionStartWorkflow(
        "PlanWorkflow", {"plan": json.loads(lived.file.read_text())}, id=f"{name}-later", task_queue="nobody"
    )
    schedule = await client.create_schedule(f"{name}-schedule", Schedule(action, ScheduleSpec()))
    lived.add("schedule", (await schedule.describe()).raw_description)
    await schedule.delete()
    async for each in client.list_workflows():  # the server is this plan's alone
        seen = Started(client, each.id)
        lived.add("descriptions", (await seen.handle.describe()).raw_description)
        kind = "the plan" if each.id == name else KINDS.get(each.workflow_type or "", each.workflow_type)
        lived.add(f"history of {kind}", *await seen.events())
    await lived.commands(("summary", name), ("history",))
    _files(lived)
    lived.add("prompts of the LLM", json.dumps(lived.llm.bodies))
    lived.add("webhook", *(post.body for post in lived.sink.posts))
    worker.terminate()
    out, err = await worker.communicate()
    lived.add("log of the worker", out, err)
    lived.add("database of the server", *(path.read_bytes() for path in lived.database.rglob("*.db*")))


def _files(lived: Lived) -> None:
    """The files of the state directory, by what they are."""
    names = {"values": "value store", "effects": "effect log", "runs": "summaries"}
    for path in lived.settings.state_dir.rglob("*"):
        if path.is_file() and path.name != "token":
            first = path.relative_to(lived.settings.state_dir).parts[0]
            lived.add(names.get(first, first), str(path), path.read_bytes())


@pytest_asyncio.fixture
async def own_server(temporal_binary: Path, tmp_path: Path) -> AsyncIterator[Server]:
    """A server with a database of its own, to look into."""
    directory = tmp_path / "server"
    directory.mkdir()
    async with development_server(temporal_binary, directory, database=directory / "temporal.db") as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("token", "keys"),
    [(NAME, False), (NAME, True), (VALUE, False)],
    ids=["named", "named, with keys", "control written out"],
)
async def test_a_secret_is_found_nowhere_but_in_its_tool(
    environ: dict[str, str], own_server: Server, tmp_path: Path, workspace: Path, token: str, keys: bool
) -> None:
    environ = environ | {"TEMPORAL_ADDRESS": own_server.address}
    if keys:
        environ["PLANS_KEYS"] = str(ring_file(tmp_path / "keys", key()))
    async with living(environ, tmp_path, workspace, token, tmp_path / "server") as (lived, worker):
        await look_while_it_waits(lived)
        (workspace / GO).touch()
        await look_after_its_end(lived, worker)
        sent = [headers.get("x-token") for _, _, headers, _ in lived.site.asked]
    assert sent == [VALUE], "the tool itself has it"
    assert not [place for place in LEAKS | SILENT if not lived.found.get(place)], "each place was looked at"
    texts = [text.encode() for text in spellings(VALUE)]
    found = {place for place, text in lived.found.items() if any(each in text or _packed(each, text) for each in texts)}
    if token == NAME:
        assert found == set(), found
        assert len(lived.found) >= 40
    else:
        assert found >= LEAKS, LEAKS - found
        assert not found & SILENT


def _packed(text: bytes, where: bytes) -> bool:
    """Whether the text is in base64 inside something longer, as in the output of commands."""
    return any(base64.b64encode(bytes(before) + text)[4:-4] in where for before in range(3))
