"""Alert rules: each fires in a test that provokes it, and what it is about is what a real worker's endpoint says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.client import Client

from plansurvive.features.telemetry.instruments import free_address
from plansurvive.runtime.settings import Settings
from scripts.get_prometheus import program
from tests.chaos.conftest import Chaos, chaos, chaos_server, chaos_worker
from tests.features.telemetry.test_metrics_of_workers import page, samples
from tests.kit.driving import terminated, work
from tests.kit.waiting import until

__all__ = ["chaos", "chaos_server", "chaos_worker"]

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
RULES, TESTS = FOLDER / "alerts.yml", FOLDER / "alerts.test.yml"


def rules() -> list[dict[str, Any]]:
    found = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in found for rule in group["rules"]]


def cases() -> list[dict[str, Any]]:
    return [case for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test["alert_rule_test"]]


def test_each_rule_has_a_test_in_which_it_fires() -> None:
    fired = {case["alertname"] for case in cases() if case["exp_alerts"]}
    assert sorted(fired) == sorted(rule["alert"] for rule in rules())


def test_each_rule_says_how_urgent_it_is_and_what_it_means() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket"), rule["alert"]
        assert set(rule["annotations"]) == {"summary", "description"}, rule["alert"]


@pytest.mark.slow
def test_promtool_accepts_the_rules_and_their_tests(caches: Mapping[str, str]) -> None:
    promtool = str(program("promtool", Settings.read(caches)))
    for command in (["check", "rules", "--lint-fatal", str(RULES)], ["test", "rules", str(TESTS)]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, cwd=FOLDER, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
async def test_the_tests_of_the_rules_use_series_as_a_real_worker_has_them(chaos: Chaos) -> None:
    """Also those of failures: a plan that no code fits, a worker that is killed, and a server that is away."""
    address = free_address()
    chaos.worker.environ |= {"PLANS_METRICS": address}
    client: Client = chaos.plans.client
    await chaos.worker.up()
    plan = await chaos.plans.start(
        [work("slow", args={"until": "go.txt"}), work("bad", "slow", args={"fails": 1}, retry={"attempts": 1})]
    )
    await until(lambda: ["start", "slow", "1"] in chaos.plans.ledger, "the step runs")
    chaos.worker.kill()
    await chaos.worker.up()
    chaos.plans.go()
    await plan.ended()
    stuck = await client.start_workflow("NoSuchWorkflow", id=f"stuck-{chaos.plans.queue}", task_queue=chaos.plans.queue)

    async def shows(start: str, *labels: str) -> bool:
        found = samples(await page(address))
        return any(
            name.startswith(start) and all(each in name for each in labels) and value for name, value in found.items()
        )

    await until(
        lambda: shows("temporal_workflow_task_execution_failed_total{"), "a task that cannot be done is counted"
    )
    await terminated(client, stuck.id)
    assert await shows("plans_attempts_total{", 'outcome="lost"', 'tool="work"')
    assert await shows("plans_attempts_total{", 'outcome="failed"', 'tool="work"')
    chaos.server.kill()
    await until(
        lambda: shows("temporal_long_request_failure_total{", 'status_code="TRANSPORT_ERROR"'), "the server is missed"
    )
    known = _labels(await page(address))
    await chaos.server.up()
    for name, labels in _used():
        if name not in ("up", "plans_llm_requests_total"):
            assert labels - {"instance", "process"} <= known[name], name


def _used() -> list[tuple[str, set[str]]]:
    series = [each["series"] for test in yaml.safe_load(TESTS.read_text())["tests"] for each in test["input_series"]]
    return [(each.partition("{")[0], set(re.findall(r"(\w+)=", each))) for each in series]


def _labels(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for sample in samples(text):
        found.setdefault(sample.partition("{")[0], set()).update(re.findall(r'(\w+)="', sample))
    return found
