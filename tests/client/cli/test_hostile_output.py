"""No command prints a control character of an id, title, name or output, nor a row that one of them made up.

Every command of the registry is run on a real server, with whatever its arguments are, beside workflows and schedules
that somebody started by hand; a command added later is walked as well.
"""

from __future__ import annotations

import io
import json
import unicodedata
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text
from temporalio.api.common.v1 import Memo, Payload, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleSpec,
    ScheduleState,
)
from temporalio.service import RPCError
from temporalio.worker import Worker

from plansurvive.client.cli.commands import COMMANDS, imported
from plansurvive.client.cli.terminal.console import SafeConsole
from tests.client.cli.command import Ended, plan, written
from tests.kit.waiting import until
from tests.nightly import only_nightly, only_sampled

EVIL = "\x1b]0;PWNED\x07\x1b[31mRED\x9b1m\u202eflip\u200bgone\r\nINJECTED row\u2028INJECTED too"
"""What a terminal obeys, what reorders a line, what nobody sees, and what would be a row of its own."""
SERVE = {"up", "worker", "web", "codec", "mcp"}
"""They run until a signal; `mcp` has commands below it, which are walked."""
OF_ITS_OWN = {"demo"}
"""It takes no argument, and has a server, a worker and files of its own: nothing of others reaches it."""
OPTIONS = {
    "schedule create": ("--every", "1h"),
    "schedule backfill": ("--from", "2026-01-01", "--to", "2026-01-01"),
    "event": ("--data", "{}"),
    "edit": ("--set", f"s.description={EVIL}"),
    "move": ("--after", "s"),
    "rerun": ("--from", "s"),
    "list": ("--limit", "200"),
    "import": ("--from", "github"),
}
"""What some commands need besides their arguments."""


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command, `schedule list` too, with the names of its arguments."""
    for name in COMMANDS:
        command = imported(name)
        for part, each in getattr(command, "commands", {"": command}).items():
            yield f"{name} {part}".strip(), [p.name for p in each.params if p.param_type_name == "argument"]


def check(text: str, where: str) -> None:
    """Nothing in it steers a terminal, and no text has begun a row."""
    kinds = ("Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn")
    wrong = {char for char in text if char != "\n" and unicodedata.category(char) in kinds}
    assert not wrong, f"{where} prints {wrong!r}: {text!r}"
    rows = [row for row in text.split("\n") if row.startswith("INJECTED")]
    assert not rows, f"{where}: a text made rows of its own: {rows}\n{text}"


@asynccontextmanager
async def started_by_hand(client: Client, names: list[str], schedule: str) -> AsyncIterator[None]:
    """Workflows and a schedule of hostile ids, with hostile titles, for as long as the block runs."""
    memo = Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(EVIL).encode())
    queue = f"nobody-{uuid.uuid4().hex}"
    for name in names:
        await client.workflow_service.start_workflow_execution(
            StartWorkflowExecutionRequest(
                namespace=client.namespace,
                workflow_id=name,
                workflow_type=WorkflowType(name="AgentWorkflow" if name.startswith("agent") else "PlanWorkflow"),
                task_queue=TaskQueue(name=queue),
                request_id=uuid.uuid4().hex,
                memo=Memo(fields=dict.fromkeys(("title", "request", "planId", "stepId"), memo)),
            )
        )
    handle = await client.create_schedule(
        schedule,
        Schedule(
            action=ScheduleActionStartWorkflow(
                "PlanWorkflow", {"plan": {"title": EVIL}}, id=names[0], task_queue=queue
            ),
            spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(days=300))]),
            state=ScheduleState(note=EVIL, paused=True),
        ),
        memo={"title": EVIL, "by": EVIL},
    )
    try:
        yield
    finally:
        with suppress(RPCError):  # the walk deletes it as well
            await handle.delete()
        for name in names:
            await client.get_workflow_handle(name).terminate()


@pytest.mark.parametrize("which", [only_sampled("started by hand"), only_nightly("waits"), only_nightly("ended")])
async def test_every_command_escapes_what_others_named(
    temporal_client: Client, environ: dict[str, str], worker: Worker, tmp_path: Path, queue: str, which: str
) -> None:
    tag = uuid.uuid4().hex[:8]
    by_hand = [f"plan-{tag}{EVIL}", f"agent-{tag}{EVIL}", f"plan-{tag}" + "x" * 900]
    prints = {"command": "printf '\\033]0;PWNED\\007\\033[31mRED\\nx\\342\\200\\256'; exit 3"}
    steps: list[dict[str, Any]] = [
        {
            "id": "s", "tool": "run_command", "description": EVIL, "args": prints, "requiresApproval": False,
            "retry": {"attempts": 1},
        },
        {"id": "t", "tool": "write_file", "description": EVIL, "args": {"path": f"{tag}\x1b[31m", "content": EVIL}},
    ]  # fmt: skip
    ended, waits = f"ended-{tag}", f"waits-{tag}"
    file = written(tmp_path / "ended.json", {"title": EVIL, "steps": steps})
    asks = [{**steps[0], "requiresApproval": True}, {"id": "q", "tool": "ask", "args": {"question": EVIL}}]
    asking = written(tmp_path / "waits.json", {"title": EVIL, "steps": asks})
    odd = written(tmp_path / f"{''.join(EVIL.split())}.json", {"title": EVIL, "steps": steps})
    schedule = f"sch-{tag}{EVIL}"

    async def told(*arguments: str) -> Ended:
        found = await plan(environ, *arguments)
        check(found.out, f"plan {arguments!r}")
        check(found.err, f"plan {arguments!r} (standard error)")
        assert "UNEXPECTED" not in found.err, f"plan {arguments!r}: {found.err}"
        return found

    async with started_by_hand(temporal_client, by_hand, schedule):
        assert (await told("run", file, "--id", ended)).code == 1
        assert (await told("start", asking, "--id", waits)).code == 0

        async def listed() -> bool:
            plans, schedules = await told("list", "--limit", "200"), await told("schedule", "list")
            return tag in schedules.out and "PWNED" in plans.out

        await until(listed, "the server's index has what was started by hand")
        target = {"started by hand": by_hand[0].removeprefix("plan-"), "waits": waits, "ended": ended}[which]
        known = {"plan": target, "plans": target, "file": file if target == ended else odd, "step": "s"}
        known |= {"directory": str(tmp_path / "new"), "name": schedule, "other": EVIL}
        for name, arguments in commands():
            if name in OF_ITS_OWN:
                assert not arguments
                continue
            if name in SERVE or (name in ("watch", "watch-files") and target == waits):  # they would wait
                continue
            given = [known.get(each, EVIL) for each in arguments]
            more = ["--id", f"{tag}-{uuid.uuid4().hex[:8]}"] if name == "start" else []
            await told(*name.split(" "), *given, *OPTIONS.get(name, ()), *more)
    await plan(environ, "cancel", waits)


def printed(*content: Any, width: int = 80, terminal: bool = False) -> str:
    """What a console of that width prints."""
    console = SafeConsole(file=io.StringIO(), width=width, markup=False, force_terminal=terminal, color_system=None)
    console.print(*content)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "content", [EVIL, Text(EVIL, "red"), Text.assemble("a", (EVIL, "bold"), "b"), Segments([Segment(EVIL)])]
)
def test_the_console_escapes_texts_of_every_kind(content: Any) -> None:
    for terminal in (True, False):
        shown = printed(content, width=400, terminal=terminal)
        assert "\\u202eflip\\u200bgone" in shown
        check(shown.replace("\nINJECTED", " INJECTED"), "the console")  # only its caller knows whose a line break is


def test_a_text_is_wrapped_by_the_width_of_what_is_shown_of_it() -> None:
    rows = printed(Text("\u202e" * 10), width=20).splitlines()
    assert max(map(len, rows)) <= 20, rows
    assert "".join(rows) == "\\u202e" * 10


def test_a_cell_is_one_row_and_leaves_room_for_the_other_columns() -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name, overflow in (("PLAN", "fold"), ("STATUS", "ellipsis"), ("TITLE", "ellipsis")):
        table.add_column(name, no_wrap=True, overflow=overflow)  # type: ignore[arg-type]
    table.add_row(Text(f"a{EVIL}"), "running", "short")
    table.add_row(Text("x" * 900), "completed", Text("t" * 900))
    table.add_row("plain-id", "failed", Text(EVIL))
    shown = printed(table)
    check(shown, "the table")
    assert all(word in shown for word in ("running", "completed", "failed", "short", "plain-id"))
    assert len(shown.splitlines()) < 30
    assert "t…" in shown
    assert "x…" in shown


def test_an_id_that_does_not_fit_continues_on_the_next_row_whole() -> None:
    table, name = Table(box=None, padding=(0, 2, 0, 0)), "nightly-" * 20
    table.add_column("PLAN", no_wrap=True, overflow="fold")
    table.add_column("TITLE", no_wrap=True, overflow="ellipsis")
    table.add_row(Text(name), Text("t" * 100))
    rows = printed(table).splitlines()[1:]
    assert "".join(row.split(" ")[0] for row in rows) == name
