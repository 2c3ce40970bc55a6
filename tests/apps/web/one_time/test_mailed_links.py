"""From the mail to the decision: the link in a notification decides about what the mail shows, once."""

from __future__ import annotations

import re

import pytest
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.apps.web.one_time.test_links import browsing, csrf_on
from tests.apps.web.page_client import ORIGIN
from tests.kit.sinks import mailbox, targets_file
from tests.kit.waiting import until

STEP = {"id": "remove", "tool": "delete_file", "args": {"path": "x.txt"}}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_link_in_a_mail_approves_once_and_its_second_use_is_refused(
    temporal_client: Client, settings: Settings
) -> None:
    plan = {"steps": [STEP], "notify": {"to": "mail", "on": "awaiting"}}
    linked = settings.with_flags(web_url=ORIGIN)
    with mailbox() as mails:
        targets_file(settings.state_dir / "notify.toml", mail=mails.url)
        async with build(temporal_client, linked, load_tools(()), indexed=True):
            options = Options(workspace=str(settings.workspace))
            started = await runs.start(temporal_client, plan, options=options, queue=settings.task_queue)
            await until(lambda: mails.found, "the mail arrives")
            path = re.findall(rf'href="{ORIGIN}(/decide/[^"]+)"', mails.texts[0])[0]
            async with browsing(linked, temporal_client) as browser:
                page = await browser.get(path)
                digest = (await runs.brief(temporal_client, started.plan_id)).pending[0].digest
                assert digest in mails.texts[0]
                form = {"decision": "approve", "csrf": csrf_on(page)}
                first = await browser.post(path, data=form)
                again = await browser.post(path, data=form)
            await runs.wait(temporal_client, started.plan_id)
            step = (await runs.show(temporal_client, started.plan_id)).step("remove")
    assert (first.status_code, again.status_code) == (200, 410)
    assert "approved by ann@example.org" in again.text
    assert step is not None
    assert step.decision is not None
    assert (step.decision.by, step.decision.via) == ("ann@example.org", "link")
