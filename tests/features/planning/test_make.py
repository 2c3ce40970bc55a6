"""`plan make` and the commands that change a plan, as processes against a real server and a scripted LLM."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.rpc import ask
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.client.cli.command import plan, written
from tests.kit.waiting import until
from tests.workflows.talking import answer, write

Environ = dict[str, str]
GOOD = answer(write("one"), write("two", "one"))
DONE = {"json": {"answer": "done", "confidence": "high"}}
BETTER = answer(write("one"), write("two", "one", content="better"))


@pytest_asyncio.fixture
async def llm(temporal_client: Client, settings: Settings) -> AsyncIterator[ScriptedLlm]:
    """An LLM that writes two notes, revises them once, and then only talks; and a worker that asks it."""
    script = [{"reply": GOOD}, {"reply": BETTER}, {"reply": {"text": "I would rather talk."}, "times": 0}]
    with ScriptedLlm(Script.of(script)) as server:
        asking = settings.with_flags(openai_base_url=server.url, model="demo")
        async with build(temporal_client, asking, load_tools(()), indexed=True):
            await until(lambda: listeners(temporal_client, asking.task_queue), "the server sees the worker poll")
            yield server


async def test_a_sentence_becomes_a_plan_that_is_changed_by_commands_and_runs(
    environ: Environ, llm: ScriptedLlm, tmp_path: Path, workspace: Path
) -> None:
    made = await plan(environ, "make", "write two notes", "--id", "notes")
    assert made.code == 0, made.err
    assert all(
        text in made.out for text in ("☐ 1. Write one", "Tool: write_file", "plan begin notes", "plan review notes")
    )

    async def ok(*arguments: str) -> str:
        ended = await plan(environ, *arguments)
        assert ended.code == 0, ended.err
        return ended.out

    async def is_listed(title: str, steps: int) -> bool:
        found = [each for each in json.loads(await ok("list", "--json")) if each["planId"] == "notes"]
        return [(each["title"], each["steps"], each["status"]) for each in found] == [(title, steps, "review")]

    await until(lambda: is_listed("Notes", 2), "the list shows the plan that was written")
    regenerated = await ok("regenerate", "notes", "say it better")
    assert "\n  ~ two  write_file" in regenerated
    assert "\n      args.content: " in regenerated
    assert "version 3" in await ok("edit", "notes", "--set", "one.args.content=mine", "--set", "title=My notes")
    file = written(tmp_path / "step.json", {k: v for k, v in write("three").items() if k != "dependsOn"})
    await ok("add", "notes", file, "--after", "one")
    await until(lambda: is_listed("My notes", 3), "the list shows the plan as it was changed")
    await ok("move", "notes", "three", "--after", "two")
    await ok("skip", "notes", "two", "--comment", "not today")
    await ok("unskip", "notes", "two")
    await ok("remove", "notes", "three", "--by", "ann")
    stale = await plan(environ, "edit", "notes", "--set", "one.notes=x", "--expect-version", "2", "--json")
    assert (stale.code, stale.json["error"]["code"]) == (2, "STALE_VERSION")
    wrong = await plan(environ, "edit", "notes", "--set", "one.args.nonsense=x")
    assert (wrong.code, "INVALID_ARGS" in wrong.err) == (2, True)
    await ok("begin", "notes")
    assert "2 of 2 steps" in await ok("watch", "notes")
    assert [(workspace / f"{name}.txt").read_text() for name in ("one", "two")] == ["mine", "better"]
    shown = json.loads(await ok("show", "notes", "--json"))
    assert [each["version"] for each in shown["changes"]] == list(range(1, 9))
    assert shown["changes"][-1]["by"] == "ann"


LETTER = """\
inputs:
  verdicts: {type: array, description: What was found}
steps:
  - {id: letter, tool: write_file, args: {path: letter.txt, content: "{{inputs.verdicts}}"}}
outputs: {path: letter.path}
"""


def looped(items: str) -> dict[str, Any]:
    """A plan with an agent for each file, and a template for what they found."""
    judge = {
        "id": "judge",
        "description": "Judge it",
        "tool": "agent",
        "args": {"objective": "judge {{file}}: {{text}}"},
    }
    text = {"id": "text", "description": "Read it", "tool": "read_file", "args": {"path": "{{file}}"}}
    return answer(
        {"id": "find", "description": "Find the notes", "tool": "find_files", "args": {"pattern": "*.md"}},
        {
            "id": "each", "description": "Look at each note", "output": "judge", "steps": [text, judge],
            "forEach": {"items": items, "as": "file", "key": "@", "maxParallel": 2},
        },
        {
            "id": "send", "description": "Write the letter", "tool": "plan",
            "args": {"template": "letter", "inputs": {"verdicts": "$each"}},
        },
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_llm_writes_a_loop_with_an_agent_in_it_and_a_template_which_is_reviewed_and_runs(
    environ: Environ, llm: ScriptedLlm, tmp_path: Path, workspace: Path
) -> None:
    for name in ("ann", "bob"):
        (workspace / f"{name}.md").write_text(f"I am {name}.")
    (tmp_path / "letter.yaml").write_text(LETTER)
    inside = ("--workspace", str(workspace))
    assert (await plan(environ, "template", "save", "letter", str(tmp_path / "letter.yaml"), *inside)).code == 0
    verdicts = [
        {"reply": {"json": {"answer": f"{name} is fine", "confidence": "high"}}, "when": f"judge {name}.md"}
        for name in ("ann", "bob")
    ]
    plans = [{"reply": looped(each), "when": {"schema": "plan"}} for each in ("$found", "$find")]
    llm.play.script.exchanges[:] = Script.of([*plans, *verdicts]).exchanges
    made = await plan(environ, "make", "judge my notes", "--id", "judged", *inside)
    assert made.code == 0, made.err
    asked = [json.dumps(seen.body["messages"]) for seen in llm.play.seen]
    assert "verdicts" in asked[0]  # the template and its inputs
    assert "found" in asked[1].split("judge my notes")[-1]
    assert all(
        text in made.out for text in ("[each.judge]", "Tool: agent", "judge {{file}}: {{text}}", "maxParallel")
    ), made.out
    assert (await plan(environ, "begin", "judged")).code == 0
    ended = await plan(environ, "watch", "judged")
    assert ended.code == 0, ended.out + ended.err
    assert json.loads((workspace / "letter.txt").read_text()) == ["ann is fine", "bob is fine"]


async def test_out_writes_a_plan_file_that_is_sound_and_ends_the_plan(
    environ: Environ, llm: ScriptedLlm, tmp_path: Path
) -> None:
    file = tmp_path / "made.json"
    nowhere = await plan(environ, "make", "write two notes", "--out", str(tmp_path / "nowhere" / "a.json"))
    assert (nowhere.code, nowhere.out, "cannot be written" in nowhere.err) == (2, "", True)
    ended = await plan(environ, "make", "write two notes", "--out", str(file), "--id", "out")
    assert ended.code == 0, ended.err
    found: dict[str, Any] = json.loads(file.read_text())
    assert [each["id"] for each in found["steps"]] == ["one", "two"]
    assert (await plan(environ, "check", str(file))).code == 0

    async def is_cancelled() -> bool:
        return bool((await plan(environ, "summary", "out", "--json")).json["status"] == "cancelled")

    await until(is_cancelled, "the plan is cancelled")


async def test_yes_follows_the_plan_to_its_end(
    environ: Environ, llm: ScriptedLlm, workspace: Path, temporal_client: Client
) -> None:
    ended = await plan(environ, "make", "write two notes", "--yes", "--timeout", "2h", "--json")
    assert (ended.code, ended.json["summary"]["status"]) == (0, "completed")
    assert (await ask(temporal_client, ended.json["planId"], "state"))["options"]["timeout"] == 7_200.0
    assert ended.json["summary"]["tokens"]["calls"] == 1


async def test_an_attempt_of_the_llm_that_fails_is_said_meanwhile(environ: Environ, llm: ScriptedLlm) -> None:
    busy = {"status": 503, "error": "busy", "headers": {"Retry-After": "3"}}
    llm.play.script.exchanges[0:0] = Script.of([{"reply": busy, "times": 1}]).exchanges
    ended = await plan(environ, "make", "write two notes", "--id", "busy")
    assert ended.code == 0, ended.err
    [row] = [row for row in ended.err.splitlines() if "attempt 1 of 5 failed" in row]
    assert "LLM_UNAVAILABLE" in row
    assert (await plan(environ, "cancel", "busy")).code == 0


async def test_a_draft_that_is_no_plan_is_kept_and_says_why(environ: Environ, llm: ScriptedLlm) -> None:
    llm.play.script.exchanges[0:2] = []
    ended = await plan(environ, "make", "write two notes", "--id", "draft")
    assert ended.code == 1
    assert "LLM_BAD_ANSWER" in ended.err
    assert "The LLM has written no plan; the draft stays in review until it has." in ended.err
    assert "plan edit draft" not in ended.err
    assert ended.out.count("\n") <= 2  # the id and its link, and nothing of an answer that there may not be
    assert "plan regenerate draft" in ended.err
    assert (await plan(environ, "make", "   ")).code == 2
    assert (await plan(environ, "cancel", "draft")).code == 0


async def test_the_tasks_of_an_agent_become_a_plan_in_review_a_file_or_are_done_at_once(
    environ: Environ, llm: ScriptedLlm, tmp_path: Path
) -> None:
    tasks = {"json": {"tasks": ["Find it", "Mend it"]}}
    answers = [{"reply": tasks, "when": {"schema": "tasks"}, "times": 0}, {"reply": DONE, "times": 0}]
    llm.play.script.exchanges[:] = Script.of(answers).exchanges
    limited = ("agent", "find and mend it", "--as-plan", "--max-calls", "7")
    made = await plan(environ, *limited, "--id", "mend")
    assert made.code == 0, made.err
    assert all(text in made.out for text in ("☐ 2. Mend it", "Tool: agent", "After: task_1", "plan begin mend"))
    assert (await plan(environ, "show", "mend", "--json")).json["status"] == "review"
    assert (await plan(environ, "cancel", "mend")).code == 0
    file = tmp_path / "tasks.json"
    assert (await plan(environ, *limited, "--out", str(file))).code == 0
    assert [each["args"]["maxCalls"] for each in json.loads(file.read_text())["steps"]] == [7, 7]
    assert (await plan(environ, "check", str(file))).code == 0
    ended = await plan(environ, *limited, "--yes", "--json")
    assert (ended.code, ended.json["summary"]["status"]) == (0, "completed"), ended.err
    for wrong in (("--start",), ("--out", str(file), "--yes")):
        assert (await plan(environ, *limited, *wrong)).code == 2
    assert (await plan(environ, "agent", "find it", "--out", str(file))).code == 2
