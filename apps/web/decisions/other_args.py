"""Approving with other arguments, in two pages: what was typed is shown as the whole call before it is final.

The second page shows the call as it would be made, what differs from the call that was asked about, and what it would
change in a file as it is now. Its form carries exactly the arguments that it shows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.decisions.asked import cards_of
from plansurvive.client.access.forms import text_of
from plansurvive.client.decide.changed_call import with_args
from plansurvive.client.differences.plan_diff import field_changes
from plansurvive.client.verbs.calls import with_values
from plansurvive.client.verbs.pending import Pending
from plansurvive.plans.errors import Refused

FINAL = "final"
"""Name of the field with the arguments that the second page showed, as JSON."""


async def shown_once_more(request: Request, asked: Pending, args: Mapping[str, Any], comment: str) -> Response:
    """The second page."""
    service = service_of(request)
    [shown] = await cards_of(service, [await with_values(with_args(asked, args), service.settings)])
    return page(
        request, "confirm_args.html", nav="inbox", plan=asked.plan_id, shown=shown, comment=comment,
        fields=list(field_changes(asked.args, args)), final=json.dumps(args),
    )  # fmt: skip


def final_args(form: FormData) -> dict[str, Any] | None:
    """The arguments that the second page showed; None if the form is that of the first. Raises Refused."""
    text = text_of(form, FINAL)
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Refused("the form does not say which arguments were shown; change them here again", "DIGEST_REQUIRED")
    return found
