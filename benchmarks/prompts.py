"""The share of an agent's prompts that is as in the request before: what a provider's prompt cache can reuse.

An agent of a scripted model makes 20 tool calls for five tasks. The same texts laid out as one message per request,
with the task list before the results, are the yardstick: so they were laid out before prompts became a conversation.
"""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.bench import Bench
from benchmarks.stand import Stand
from benchmarks.tables import Table
from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm

TASKS, CALLS_PER_TASK = 5, 4
CHARACTERS = 1_500
"""Length of each file that is read."""
UNCHANGED = 0.8
"""Bar: characters of all requests that are as in the request before."""
Messages = list[dict[str, str]]


async def measure(bench: Bench) -> list[Table]:
    """Run the agent once; a ratio needs no repetition."""
    with tempfile.TemporaryDirectory(prefix="plans-bench-", ignore_cleanup_errors=True) as folder:
        sent = await _sent(Path(folder), 1 if bench.quick else CALLS_PER_TASK)
    table = Table(
        title="Prompts of an agent",
        columns=["layout", "requests", "characters sent", "unchanged", "median", "least", "after the system prompt"],
        note=f"Unchanged: the share of a request's characters that the request before began with. The model has"
        f" {TASKS} tasks of {CALLS_PER_TASK} calls, whose results have {CHARACTERS:,} characters each; the least share"
        f" is where the mode changes. Bar: {UNCHANGED:.0%}.",
    )
    for layout, requests in (("one message", [one_message(each) for each in sent]), ("conversation", sent)):
        total, shares = unchanged(requests)
        size = sum(len(json.dumps(messages)) for messages in requests)
        cells = [f"{len(requests)}", f"{size:,}", f"{total:.1%}", f"{median(shares):.1%}", f"{min(shares):.1%}"]
        cells.append(f"{unchanged([messages[1:] for messages in requests])[0]:.1%}")
        table.add(layout, *cells, reached=total >= UNCHANGED if layout == "conversation" else None)
    return [table]


def unchanged(requests: Sequence[Messages]) -> tuple[float, list[float]]:
    """The share of all characters that are as in the request before, and the share of each request from the second."""
    texts = [json.dumps(messages) for messages in requests]
    common = [_common(one, two) for one, two in pairwise(texts)]
    shares = [each / len(text) for each, text in zip(common, texts[1:], strict=True)]
    return sum(common) / sum(map(len, texts)), shares


def _common(one: str, two: str) -> int:
    """The length of the longest common beginning."""
    return next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def one_message(messages: Messages) -> Messages:
    """The same prompt as a system and a user message, the results after the task list and without the model's words."""
    told = "\n\n".join(each["content"] for each in messages if each["role"] == "user")
    parts = re.split(r"(?m)^=== ([A-Z ]+) ===\n", told)
    bodies: dict[str, list[str]] = {}
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        bodies.setdefault(title, []).append(body.strip())
    order = ("USER REQUEST", "TASK LIST", "CURRENT TASK", "COMPLETED TASKS", "TOOL RESULTS", "NOTICE", "INSTRUCTIONS")
    sections = [f"=== {title} ===\n" + "\n".join(bodies[title]) for title in order if title in bodies]
    return [messages[0], {"role": "user", "content": "\n\n".join(sections)}]


async def _sent(folder: Path, calls: int) -> list[Messages]:
    with ScriptedLlm(Script.of(_story(calls))) as llm:
        variables = {"OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "scripted"}
        async with Stand(folder, durable=False, variables=variables) as stand:
            for number in range(TASKS * calls):
                (stand.workspace / f"{number}.txt").write_text(f"line of file {number}\n" * (CHARACTERS // 16))
            await stand.client.execute_workflow(
                "AgentWorkflow",
                {"order": {"request": "Read all files."}, "options": {"workspace": str(stand.workspace)}},
                id=f"agent-{uuid.uuid4().hex[:12]}",
                task_queue="bench-plan",
            )
        return [body["messages"] for body in llm.bodies]


def _story(calls: int) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [
        {"tool_calls": [{"tool": "plan_actions", "args": {}}]},
        {"tasks": [f"Read part {number} of the files" for number in range(1, TASKS + 1)]},
    ]
    for number in range(TASKS * calls):
        path = f"{number}.txt"
        answer: dict[str, Any] = {
            "reasoning": f"File {number} is next; I compare it with what I have read before.",
            "tool_calls": [{"tool": "read_file", "args": {"path": path}}],
        }
        if number % calls == calls - 1:
            answer["task_completed"] = f"Read the files up to {path}; nothing in them is out of the ordinary."
        said.append(answer)
    said.append({"final_answer": "All files are read."})
    return [{"reply": {"json": answer}} for answer in said]
