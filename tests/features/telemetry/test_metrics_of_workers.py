"""The metrics of a real worker: all that the dashboard and the alert rules name is at its endpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.features.telemetry.instruments import free_address
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, step, work
from tests.kit.waiting import until
from tests.test_worker import line, worker_process
from tests.workflows.agents import call, says

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "plans.json"
OWN = re.compile(r"\b(?:plans|temporal)_[a-z_]+[a-z]\b(?!\")")
OF_A_FAILURE = {"temporal_long_request_failure_total", "temporal_workflow_task_execution_failed_total"}
"""At the endpoint only after something that a healthy worker never meets; tests of alerts provoke it."""


async def page(address: str) -> str:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"http://{address}/metrics")).text


def samples(text: str) -> dict[str, float]:
    """The samples of a page, by name and labels."""
    found = (entry.rpartition(" ") for entry in text.splitlines() if entry and not entry.startswith("#"))
    return {name: float(value) for name, _, value in found}


def named() -> set[str]:
    """The metrics that the dashboard and the rules use."""
    panels = json.dumps(list(_expressions(json.loads(DASHBOARD.read_text()))))
    return set(OWN.findall(RULES.read_text() + panels)) - {"plans_event"}


def _expressions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (value for name, value in node.items() if name == "expr")
        yield from (each for value in node.values() for each in _expressions(value))
    elif isinstance(node, list):
        yield from (each for value in node for each in _expressions(value))


@pytest.mark.slow
async def test_all_metrics_of_the_dashboard_and_the_alerts_are_at_the_endpoint_of_a_worker(
    environ: dict[str, str], temporal_client: Client, queue: str, workspace: Path
) -> None:
    address = free_address()
    story = [says({"tool_calls": [call("work", name="x")]}), says({"answer": "done"})]
    steps = [
        work("one", args={"fails": 1}, retry={"attempts": 2, "delay": 0.01}),
        work("broken", args={"fails": 9}, retry={"attempts": 1}),
        {"id": "agent", "tool": "agent", "args": {"objective": "Do it.", "maxCalls": 3}},
    ]
    with ScriptedLlm(Script.of(story)) as llm:
        of_llm = {"OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "demo", "PLANS_LLM_PRICES": "demo=1000/1000"}
        given = {"PLANS_METRICS": address, "PLANS_TOOLS": LEDGER_TOOLS, **of_llm}
        async with worker_process(environ | given) as process:
            await line(process)
            plans = Plans(temporal_client, queue, workspace)
            await plans.run(steps)
            waits = await plans.start([work("gate", requiresApproval=True)])
            await waits.until_asked("gate")

            async def awaits() -> dict[str, float] | None:
                found = samples(await page(address))
                is_known = found.get("plans_oldest_decision_awaited_seconds", 0) > 0
                return found if is_known and found.get('plans_open{status="running"}', 0) >= 1 else None

            found: dict[str, float] = await until(awaits, "the gauges have the plan that awaits a decision")
            await waits.handle.terminate()
    assert found['plans_attempts_total{outcome="completed",tool="work"}'] == 2
    assert found['plans_attempts_total{outcome="failed",tool="work"}'] == 2
    assert found['plans_steps_total{outcome="failed",tool="work"}'] == 1
    assert found['plans_ended_total{status="partial"}'] == 1
    assert found['plans_llm_requests_total{model="demo",outcome="completed"}'] == 2
    tokens = (
        found['plans_llm_tokens_total{model="demo",type="input"}']
        + found['plans_llm_tokens_total{model="demo",type="output"}']
    )
    assert found['plans_llm_request_cost_sum{model="demo"}'] == pytest.approx(tokens / 1_000)
    served = {re.sub(r"\{.*", "", name, flags=re.DOTALL) for name in found}
    assert named() - served <= OF_A_FAILURE
    assert len(named()) > 15


@pytest.mark.slow
async def test_the_processes_of_a_worker_have_one_page(
    environ: dict[str, str], temporal_client: Client, queue: str, workspace: Path
) -> None:
    address = free_address()
    async with worker_process(
        environ | {"PLANS_METRICS": address, "PLANS_TOOLS": LEDGER_TOOLS}, "--processes", "2"
    ) as process:
        await line(process)
        await line(process)
        view = await Plans(temporal_client, queue, workspace).run([work(f"step{number}") for number in range(40)])
        found = samples(await page(address))
        assert step(view, "step0")["status"] == "completed"
        done = {name: value for name, value in found.items() if name.startswith("plans_attempts_total{")}
        assert sum(done.values()) == 40
        assert {re.findall('process="(.)"', name)[0] for name in found} == {"1", "2"}
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"http://{address}/other")).status_code == 404
        process.terminate()
        await process.wait()
    assert not list((Path(environ["PLANS_STATE_DIR"]) / "metrics").iterdir())


@pytest.mark.slow
async def test_an_address_that_is_taken_is_refused_with_its_setting(environ: dict[str, str]) -> None:
    taken = environ["TEMPORAL_ADDRESS"]
    for flags in ((), ("--processes", "2")):
        async with worker_process(environ | {"PLANS_METRICS": taken}, *flags) as process:
            _, errors = await process.communicate()
            assert process.returncode == 2
            assert "BAD_SETTING:PLANS_METRICS" in errors.decode()


@pytest.mark.slow
async def test_lines_of_a_workers_log_are_json_with_plan_step_and_trace(
    environ: dict[str, str], temporal_client: Client, queue: str, workspace: Path
) -> None:
    given = {"PLANS_LOG": "json", "PLANS_TOOLS": LEDGER_TOOLS}
    async with worker_process(environ | given) as process:
        await line(process)
        plan = await Plans(temporal_client, queue, workspace).start([work("one", args={"value": "canary-5512"})])
        await plan.ended()
        process.terminate()
        _, errors = await process.communicate()
    entries = [json.loads(each) for each in errors.decode().splitlines()]
    (attempt,) = [each for each in entries if each["message"] == "attempt ended"]
    assert (attempt["planId"], attempt["stepId"], attempt["attempt"]) == (plan.id[5:], "one", 1)
    assert (attempt["level"], attempt["outcome"], attempt["activity"]) == ("info", "completed", "work")
    assert [each["status"] for each in entries if each["message"] == "plan ended"] == ["completed"]
    assert "canary" not in errors.decode()
