"""Our server passes what the record says: the public conformance suite of MCP, every server scenario of each version.

`plans/` are fixture tools as plans, offered as templates; `asking.py`, `talking.py` and `resources.py` are the fixtures
that no plan can be; `served.py` serves them behind the page's own guard, `suite.py` runs the pinned suite.
WRITE_CONFORMANCE=1 (`make conformance`) writes the record and docs/reference/mcp-conformance.md instead of comparing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from tests.conformance import record
from tests.conformance.served import served
from tests.conformance.suite import fetched, run, scenarios

pytestmark = pytest.mark.slow


async def test_the_suite_has_the_outcome_that_the_documents_say(
    environ: dict[str, str], temporal_client: Client, worker: Worker, tmp_path: Path
) -> None:
    place = await fetched()
    given = environ | {"PLANS_AUTO_WORKER": "off"}
    async with served(given, temporal_client) as url:
        found = [
            outcome
            for kind, names in (await scenarios(place)).items()
            for outcome in await run(place, url, kind, names, tmp_path / "results")
        ]
    if os.environ.get("WRITE_CONFORMANCE"):
        record.write(found)
    assert record.of(found) == record.recorded()
