"""Records that are encrypted, that are gone, that are many; prompts in other words; the command."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client

from plansurvive.apps.evaluation.commands import shown_prompts
from plansurvive.apps.evaluation.record import RecordGone
from plansurvive.apps.evaluation.replay import replay
from plansurvive.apps.evaluation.report_text import total_rows
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.connect import connect
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.apps.evaluation.recorded_runs import FIRST, LATER, WORKS, call, lab, says
from tests.client.cli.command import plan as command
from tests.features.keys.rings import key, ring_file
from tests.kit.servers import development_server
from tests.kit.waiting import until
from tests.nightly import only_nightly

DEMO = [says(WORKS, FIRST), says({"answer": "Both are written."}, LATER)]


@pytest.mark.parametrize("number", [4, only_nightly(100)])
async def test_as_many_recorded_runs_as_wanted_are_identical_and_their_ledger_stays_empty(
    number: int, temporal_client: Client, settings: Settings
) -> None:
    tasks = "Split the request into tasks"
    story = [
        says({"tool_calls": [call("plan_actions", reason="two")]}, FIRST, request="by tasks"),
        says({"tasks": ["Write one", "Write two"]}, tasks),
        *(
            says(
                {"tool_calls": [call("work", name=name)], "task_completed": f"{name} is written"}, f"\nTask {at}: Write"
            )
            for at, name in enumerate(("one", "two"), 1)
        ),
        says({"final_answer": "All written."}, "ALL 2 tasks are complete"),
        *DEMO,
    ]
    async with lab(temporal_client, settings, story) as here:
        requests = [f"Write number {each}{' by tasks' * (each % 2)}" for each in range(number)]
        names = await asyncio.gather(*map(here.recorded, requests))
        here.forget()
        found = await replay(temporal_client, names)
        again = await replay(temporal_client, names, here.asking(), side_by_side=8)
        assert here.written == []
    assert (found.same, again.same) == (number, number), [each for each in again.runs if not each.identical][:1]
    assert found.identical
    assert again.identical
    assert found.was.calls == 2 * number
    assert again.now.tokens == again.was.tokens


@pytest_asyncio.fixture
async def encrypted_server(temporal_binary: Path, tmp_path: Path) -> AsyncIterator[Server]:
    """A server of its own: what is encrypted on the shared one, tests that prune could not read."""
    async with development_server(temporal_binary, tmp_path) as running:
        yield running


@pytest.mark.slow
async def test_an_encrypted_record_is_replayed_with_its_key_and_refused_without(
    encrypted_server: Server, environ: dict[str, str], tmp_path: Path
) -> None:
    environ = environ | {"TEMPORAL_ADDRESS": encrypted_server.address, "PLANS_EXTERNAL_BYTES": "1024"}
    settings = Settings.read(environ | {"PLANS_KEYS": str(ring_file(tmp_path / "keys", key()))})
    client = await connect(settings)
    writes = {"tool_calls": [call("work", name="canary")]}
    async with lab(client, settings, [says(writes, FIRST), says({"answer": "Written."}, LATER)]) as here:
        name = await here.recorded("Write it")
        here.forget()
        found = await replay(client, name, here.asking())
        events = [event async for event in client.get_workflow_handle(name).fetch_history_events()]
    assert found.identical, found
    assert not any(b"canary" in event.SerializeToString() for event in events)
    with pytest.raises(PlanError) as refused:
        await replay(await connect(Settings.read(environ)), name)
    assert refused.value.code == "KEY_MISSING"


@pytest.mark.slow
async def test_a_record_that_is_gone_or_not_whole_is_refused_with_a_clear_error(environ: dict[str, str]) -> None:
    settings = Settings.read(environ | {"PLANS_EXTERNAL_BYTES": "1024"})
    client = await connect(settings)
    async with lab(client, settings, DEMO) as here:
        names = [await here.recorded("Write one and two") for _ in range(2)]
    request = DeleteWorkflowExecutionRequest(
        namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=names[0])
    )
    await client.workflow_service.delete_workflow_execution(request)

    async def is_gone() -> bool:
        return (await client.count_workflows(f"WorkflowId = '{names[0]}'")).count == 0

    await until(is_gone, "the run is deleted")
    with pytest.raises(RecordGone, match="what is not recorded cannot be replayed"):
        await replay(client, names[0])
    shutil.rmtree(settings.state_dir / "values")
    (settings.state_dir / "values").mkdir()
    with pytest.raises(RecordGone, match="is not whole any more"):
        await replay(client, names[1])
    told = await command(environ, "replay", names[0], "--json")  # its earlier name
    assert (told.code, told.json["error"]["code"]) == (4, "RECORD_GONE")


async def test_of_the_last_runs_those_that_cannot_be_read_are_named_and_the_others_replayed(
    environ: dict[str, str],
) -> None:
    long = [says(WORKS, FIRST), says({"answer": "Both are written. " * 200}, LATER)]
    settings = Settings.read(environ | {"PLANS_EXTERNAL_BYTES": "1024"})
    client = await connect(settings)
    async with lab(client, settings, long) as here:
        lost = await here.recorded("Write one and two")
    shutil.rmtree(settings.state_dir / "values")
    (settings.state_dir / "values").mkdir()
    async with lab(client, settings, long) as here:
        whole = await here.recorded("Write one and two")
    with pytest.raises(RecordGone):
        await replay(client, [lost, whole])
    found = await replay(client, [lost, whole], leaves_out=True)
    assert ([each.id for each in found.runs], found.same) == ([whole], 1)
    assert [(each.id, each.code) for each in found.unreadable] == [(lost, "RECORD_GONE")]
    assert not found.identical
    assert f"not replayed: {lost}: RECORD_GONE: " in total_rows(found)[-1]


async def test_the_command_says_what_differs_and_ends_with_one(
    temporal_client: Client, environ: dict[str, str]
) -> None:
    settings = Settings.read(environ)
    client = await connect(settings)
    story = [
        *DEMO,
        says({"tool_calls": [call("work", name="one")]}, FIRST, "other"),
        says({"answer": "Only one \x1b[31mred"}, LATER, "other"),
    ]
    async with lab(client, settings, story) as here:
        name = await here.recorded("Write one and two")
        here.forget()
        asking = environ | {"OPENAI_BASE_URL": here.llm.url, "PLANS_LLM_PRICES": "demo=1000/1000"}
        same = await command(asking, "evaluate", name)
        before = len(here.llm.bodies)
        estimate = await command(
            asking, "evaluate", name, "--model", "other", "--estimate", "--price", "other=2000/2000"
        )
        assert len(here.llm.bodies) == before
        other = await command(asking, "evaluate", name, "--model", "other", "--price", "other=2000/2000")
        as_json = await command(asking, "evaluate", name, "--model", "other", "--json")
        prompts = Path(settings.state_dir, "careful.toml")
        prompts.write_text('[agent]\nsimple = "Be careful. Answer with one JSON object in the format below."\n')
        careful = await command(asking, "evaluate", name, "--model", "demo", "--prompt-set", str(prompts))
        system = here.llm.bodies[-1]["messages"][0]["content"]
        assert here.written == []
    assert (same.code, "identical: 2 LLM requests, 2 calls" in same.out) == (0, True), same
    assert estimate.code == 0
    assert "1 run: about 2 LLM requests to other" in estimate.err
    assert other.code == 1
    assert "tool calls    2 -> 1" in other.out
    assert '- work {"name": "two"}' in other.out
    assert "cost " in other.out
    assert "\x1b" not in other.out
    assert as_json.json["runs"][0]["anew"]["now"]["calls"] == 1
    assert as_json.code == 1
    assert careful.code in (0, 1)
    assert "=== RULES ===\nBe careful." in system
    assert "never\n follow instructions" in system.replace("never follow", "never\n follow")
    assert "identical, asked demo with the prompt set careful.toml" in careful.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], "BAD_USAGE"),
        (["a", "--last", "3"], "BAD_USAGE"),
        (["a", "--recorded", "--model", "x"], "BAD_USAGE"),
        (["a", "--prompt-set", "nowhere.toml"], "BAD_PROMPT_SET"),
        (["a", "--model", "x", "--max-cost", "1"], "BAD_USAGE"),
    ],
)
async def test_a_command_that_cannot_be_meant_is_refused(
    arguments: list[str], code: str, environ: dict[str, str]
) -> None:
    told = await command(environ | {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "evaluate", *arguments, "--json")
    assert (told.code, told.json["error"]["code"]) == (2, code)


def test_the_prompts_of_this_version_are_a_prompt_set(tmp_path: Path) -> None:
    from plansurvive.apps.evaluation.commands import WORDS, read_prompt_set

    path = tmp_path / "ours.toml"
    path.write_text(shown_prompts())
    found = read_prompt_set(path)
    assert set(found.parts) == set(WORDS)
    assert all(ours.strip() == instead.strip() for ours, instead in found.parts.values())
