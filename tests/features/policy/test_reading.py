"""`plan policy report` over real plans: what came of their calls is read from their histories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.policy.policy_file import read
from plansurvive.features.policy.reading import _Reader, reported
from plansurvive.features.policy.reporting import report
from plansurvive.runtime.connect import connect
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.apps.web.page_client import browsing
from tests.apps.web.visiting import Visitor, service_on
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, count, work
from tests.kit.waiting import until

RULES = """
[[rule]]
name = "commands"
tool = "run_command"
command = ["echo *"]
decide = "ask"
[[rule]]
name = "work"
tool = "work"
args.name = "fine"
decide = "allow"
[[rule]]
name = "never"
tool = "work"
args.name = "bad"
decide = "deny"
"""
OTHER = '[[rule]]\nname = "new"\ntool = "run_command"\ncommand = ["echo *"]\ndecide = "allow"\n'


TOOLS = load_tools([LEDGER_TOOLS])
SPECS = {name: tool.spec for name, tool in TOOLS.items()}


def ruled(settings: Settings, tmp_path: Path) -> Settings:
    file = tmp_path / "policy.toml"
    file.write_text(RULES)
    file.chmod(0o600)
    return settings.with_flags(policy=file)


def echo(name: str, text: str) -> dict[str, object]:
    return {"id": name, "tool": "run_command", "args": {"command": f"echo {text}"}}


async def test_what_came_of_calls_by_rule_and_what_would_have(
    settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    client, settings = await connect(settings), ruled(settings, tmp_path)
    since = datetime.now(UTC) - timedelta(minutes=1)
    async with build(client, settings, TOOLS, indexed=True):
        plan = await Plans(client, settings.task_queue, workspace).start(
            [*(echo(name, name) for name in "abcd"), work("fine"), work("bad"), work("plain")]
        )
        for name in "abcd":
            await plan.until_asked(name)
        for name in "abc":
            await plan.approve(name, by="ann")
        await plan.deny("d", by="bob")
        await plan.ended()
        await until(lambda: count(client, f"WorkflowId = '{plan.id}' AND ExecutionStatus != 'Running'"), "it is listed")
        other = read(OTHER, datetime.now(UTC)).policy
        found = await reported(client, settings.task_queue, since, SPECS, other)
    assert (found.plans, found.calls, found.more) == (1, 7, False)
    assert {each.rule: each.outcomes for each in found.rules} == {
        "commands": {"approved": 3, "denied": 1}, "work": {"allowed": 1}, "never": {"refused": 1}, "": {"unruled": 1},
    }  # fmt: skip
    assert found.other is not None
    assert found.other.changed["ask -> allow"] == 4


async def test_a_call_of_a_plan_that_is_still_open_is_pending(
    settings: Settings, workspace: Path, tmp_path: Path
) -> None:
    client, settings = await connect(settings), ruled(settings, tmp_path)
    since = datetime.now(UTC) - timedelta(minutes=1)
    async with build(client, settings, TOOLS, indexed=True):
        plan = await Plans(client, settings.task_queue, workspace).start([echo("a", "a"), echo("b", "b")])
        for name in "ab":
            await plan.until_asked(name)
        await plan.handle.execute_update("decide", {"stepId": "a", "approved": True, "by": "ann"})
        await plan.until_status("a", "completed")
        await until(lambda: count(client, f"WorkflowId = '{plan.id}'"), "it is listed")
        found = await reported(client, settings.task_queue, since, SPECS, None)
        await plan.handle.cancel()
        await plan.ended()
    assert {each.rule: each.outcomes for each in found.rules} == {"commands": {"approved": 1, "pending": 1}}
    assert found.proposals == []  # one like them was denied


async def test_the_page_shows_the_same(server: Server, settings: Settings, server_client: Client) -> None:
    service = service_on(server, settings, server_client)
    async with browsing(service) as browser:
        text = await Visitor(service, browser, server_client).get("/policy")
    assert "There is no policy" in text
    assert "0 calls in 0 plans since" in text


def test_the_calls_of_a_segment_are_counted_and_not_compared() -> None:
    def call(step: str, **how: Any) -> dict[str, Any]:
        return {"stepId": step, "number": 1, "digest": "d" * 64, "tool": "write_file", **how}

    allowed = {"decide": "allow", "rules": ["docs"], "hash": "ab" * 32}
    denied = {"parts": {"policy": {"decide": "deny", "rules": ["never"]}}}
    attempt = {"number": 1, "code": "POLICY_DENIED", "error": "x", "began": began(0).isoformat()}
    reader = _Reader(None)  # type: ignore[arg-type]
    reader._in_segment(
        {"calls": [
            call("a", returned={"duration": 1.0, "parts": {"policy": allowed}}), call("b", returned={"duration": 1.0}),
            call("c", failed={"error": "x", "attempt": attempt, "details": denied}), call("d", left="a limit"),
        ]},
        began(0),
    )  # fmt: skip
    calls = [each for step, made in reader.made.items() for each in reader.seen("p", step, made, {})]
    found = report(calls, began(0), 1, read(OTHER, began(0)).policy)
    assert {each.rule: each.outcomes for each in found.rules} == {
        "docs": {"allowed": 1}, "never": {"refused": 1}, "": {"unruled": 1},
    }  # fmt: skip
    assert found.other is not None
    assert (found.other.unknown, found.other.same, found.other.changed) == (3, 0, {})
    reader._in_segment("completed by hand", began(0))


def began(hours: int) -> datetime:
    return datetime(2026, 11, 28, hours, tzinfo=UTC)
