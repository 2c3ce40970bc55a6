"""A real Prometheus, which scrapes real workers and evaluates our alert rules in the time of `scaled_rules`."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import httpx
import yaml

from plansurvive.features.telemetry.instruments import free_address
from plansurvive.runtime.settings import Settings
from scripts.get_prometheus import program
from tests.alerts.scaled_rules import scaled
from tests.kit.waiting import until

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
INTERVAL = "1s"
"""Of scrapes and of evaluations: half a minute in the time of the rules."""
LOOKBACK = "10s"
"""How long a series without samples counts as it was: the default of five minutes in the time of the rules."""


@dataclass(frozen=True)
class Prometheus:
    """It, asked over HTTP."""

    address: str
    since: float = 0.0
    """When it was ready, as time.time(): what fired before does not count."""

    async def counts_from_now(self, workers: int) -> Prometheus:
        """It, when it has found so many workers. It looks for them some seconds after it began, which are minutes here:
        until then none answers.
        """

        async def has_found_them() -> bool:
            found = await self.value("up == 1")
            return len(found) == workers and not (await self._asked("alerts"))["alerts"]

        await until(has_found_them, "Prometheus sees the workers, and none is missing any more", every=0.2)
        return replace(self, since=time.time())

    async def firing(self) -> set[str]:
        """The names of the alerts that fire now."""
        alerts = (await self._asked("alerts"))["alerts"]
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

    async def fired(self) -> set[str]:
        """The names of the alerts that fire now or did so before, since it was ready."""
        seconds = int(time.time() - self.since)
        if not seconds:
            return set()
        ever = f"max_over_time(ALERTS{{alertstate='firing'}}[{seconds}s])"
        return {each["metric"]["alertname"] for each in await self.value(f"group by (alertname) ({ever})")}

    async def value(self, expression: str) -> list[dict[str, Any]]:
        """The result of an expression, now."""
        found: list[dict[str, Any]] = (await self._asked("query", query=expression))["result"]
        return found

    async def rules(self) -> list[dict[str, Any]]:
        """The rules, and how they fare."""
        return [rule for group in (await self._asked("rules"))["groups"] for rule in group["rules"]]

    async def _asked(self, what: str, **parameters: str) -> dict[str, Any]:
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = (await client.get(f"http://{self.address}/api/v1/{what}", params=parameters)).json()
        assert answer["status"] == "success", answer
        found: dict[str, Any] = answer["data"]
        return found


def _started(command: list[str], folder: Path, output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=dict(os.environ), cwd=folder, stdout=output, stderr=output)


@asynccontextmanager
async def scraping(targets: Sequence[str], folder: Path, settings: Settings) -> AsyncIterator[Prometheus]:
    """Prometheus with our rules, scraping the metrics at these addresses; its data and its log are in the folder."""
    folder.mkdir()
    (folder / "alerts.yml").write_text(yaml.safe_dump(scaled(yaml.safe_load(RULES.read_text()))))
    (folder / "prometheus.yml").write_text(
        yaml.safe_dump(
            {
                "global": dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"), INTERVAL),
                "rule_files": ["alerts.yml"],
                "scrape_configs": [{"job_name": "plans", "static_configs": [{"targets": list(targets)}]}],
            }
        )
    )
    address, log = free_address(), folder / "log"
    command = [str(program("prometheus", settings)), f"--web.listen-address={address}"]
    command += [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command += [f"--query.lookback-delta={LOOKBACK}"]
    with log.open("wb") as output:
        process = _started(command, folder, output)
    try:

        async def is_ready() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                async with httpx.AsyncClient(trust_env=False) as client:
                    return (await client.get(f"http://{address}/-/ready")).status_code == 200
            except httpx.TransportError:
                return False

        await until(is_ready, "Prometheus is ready")
        yield Prometheus(address)
    finally:
        process.kill()
        process.wait()
