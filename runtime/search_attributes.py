"""Registers our custom search attributes on a server, and detects which ones it has.

A workflow that upserts an unregistered search attribute is stuck (TEMPORAL.md 5). So a worker checks first and sets
registered ones only: plans are indexed as far as the server supports it, and run without otherwise.
"""

from __future__ import annotations

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.runtime.server import SEARCH_ATTRIBUTES

TYPES = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    "Text": IndexedValueType.INDEXED_VALUE_TYPE_TEXT,
}
OF_NO_PLAN = (
    "(ParentWorkflowId IS NULL OR (ParentWorkflowId NOT STARTS_WITH 'plan-'"
    " AND ParentWorkflowId NOT STARTS_WITH 'agent-'))"
)
"""In a query: what runs for no step of ours, so also a plan that a workflow of somebody else runs as its child."""
TOLD = frozenset({"PlanStatus", "PlanPending", "PlanTitle"})
"""Upserted by workflows, if all of them are registered; the others are set by the client at start only."""


async def ensure(client: Client) -> frozenset[str]:
    """Register our missing search attributes; returns the registered ones. Never raises."""
    try:
        missing = await _missing(client)
        if missing:
            attributes = {name: TYPES[SEARCH_ATTRIBUTES[name]] for name in missing}
            request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=attributes)
            await client.operator_service.add_search_attributes(request)
    except RPCError:  # not allowed or not supported; they may be registered anyway
        pass
    return await known(client)


async def known(client: Client) -> frozenset[str]:
    """Those of our search attributes that are registered; registers nothing. Never raises."""
    if await _finds(client, *SEARCH_ATTRIBUTES):
        return frozenset(SEARCH_ATTRIBUTES)
    return frozenset([name for name in SEARCH_ATTRIBUTES if await _finds(client, name)])


async def _finds(client: Client, *names: str) -> bool:
    """Whether the server accepts a visibility query with these names; it rejects unregistered ones."""
    try:
        await client.count_workflows(" AND ".join(f"{name} = 'none'" for name in names))
    except RPCError:
        return False
    return True


async def _missing(client: Client) -> list[str]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    known = await client.operator_service.list_search_attributes(request)
    return [name for name in SEARCH_ATTRIBUTES if name not in known.custom_attributes]
