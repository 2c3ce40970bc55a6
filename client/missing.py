"""What people read of a plan that is not there, alike in every app: where it was looked for, which one may be meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from temporalio.client import Client

from plansurvive.client.errors import PlanNotFound
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.connect import DEFAULT_NAMESPACE


async def completed(client: Client | Callable[[], Awaitable[Client]], error: PlanError) -> PlanError:
    """The error as people read it: of what the server does not have, with all that can be said of it.

    `client`: or how to connect; without a connection the error stays as it is.
    """
    if not isinstance(error, PlanNotFound) or error.sought is None:
        return error
    with suppress(PlanError):
        client = client if isinstance(client, Client) else await client()
        near = await _near(client, error.sought.plan) if error.sought.plan else error.sought.near
        return type(error)(error.sought._replace(place=in_namespace(client), near=near))
    return error


def in_namespace(client: Client) -> str:
    """Where a client looks, unless it is the usual namespace: what is missed may be in that one."""
    return "" if client.namespace == DEFAULT_NAMESPACE else f" in the namespace '{client.namespace}'"


async def _near(client: Client, plan: str) -> str:
    """The id among those of the newest plans that this one probably means; empty if none is similar."""
    from plansurvive.client.listing import list_plans
    from plansurvive.plans.definition.near_names import MAX_NAMES, Hints

    with suppress(PlanError):  # what was wrong is said without a hint as well
        return Hints().near(plan, [each.plan_id async for each in list_plans(client, limit=MAX_NAMES)])
    return ""
