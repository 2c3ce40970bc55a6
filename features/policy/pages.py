"""`/policy`: the rules that count here, and what came of calls over seven days, as `plan policy report` has it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from plansurvive.client.local_tools import known_tools
from plansurvive.client.page.pages import page, site_of
from plansurvive.features.policy.policy_file import file_of, text_of
from plansurvive.features.policy.policy_file import read as read_policy
from plansurvive.features.policy.reading import reported
from plansurvive.features.policy.reporting import in_words
from plansurvive.runtime.settings import SettingError

SINCE = timedelta(days=7)


async def shown(request: Request) -> Response:
    """The policy of this machine, and the report."""
    service = site_of(request)
    settings, now = service.settings, datetime.now(UTC)
    try:
        text, problem = await asyncio.to_thread(text_of, settings), ""
    except SettingError as error:
        text, problem = None, str(error)
    reading = read_policy(text, now) if text is not None else None
    tools = await asyncio.to_thread(known_tools, settings)
    found = await reported(await service.client(), settings.task_queue, now - SINCE, tools)
    mistakes = [problem] if problem else [str(each) for each in reading.mistakes] if reading else []
    return page(
        request, "policy/policy.html", nav="", file=str(file_of(settings)), mistakes=mistakes,
        policy=reading.policy if reading else None, lines=list(in_words(found)),
    )  # fmt: skip


routes = [Route("/policy", shown)]
