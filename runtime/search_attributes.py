"""Whether a server can index our plans, and telling it how where it lets us.

A workflow that sets a search attribute its server does not know is stuck until it does. So a worker looks first, and
nothing is set that is not known: a plan is indexed as far as its server can, and runs all the same where it cannot.
"""

from __future__ import annotations

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.server import SEARCH_ATTRIBUTES

TYPES = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    "Text": IndexedValueType.INDEXED_VALUE_TYPE_TEXT,
}
TOLD = frozenset({"PlanStatus", "PlanPending", "PlanTitle"})
"""Those a workflow sets by itself, if its worker says that the server knows them all; others only who starts it."""


async def ensure(client: Client) -> frozenset[str]:
    """Those of our search attributes the server knows, after asking it to add the others. Never raises."""
    try:
        missing = await _missing(client)
        if missing:
            attributes = {name: TYPES[SEARCH_ATTRIBUTES[name]] for name in missing}
            request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=attributes)
            await client.operator_service.add_search_attributes(request)
    except RPCError:  # not allowed, or not supported: it may know them all the same
        pass
    return await known(client)


async def known(client: Client) -> frozenset[str]:
    """Those of our search attributes the server knows; nothing is added. Never raises."""
    if await _finds(client, *SEARCH_ATTRIBUTES):
        return frozenset(SEARCH_ATTRIBUTES)
    return frozenset([name for name in SEARCH_ATTRIBUTES if await _finds(client, name)])


async def _finds(client: Client, *names: str) -> bool:
    """Whether the server takes a query with these names: what it does not know it refuses."""
    try:
        await client.count_workflows(" AND ".join(f"{name} = 'none'" for name in names))
    except RPCError:
        return False
    return True


async def _missing(client: Client) -> list[str]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    known = await client.operator_service.list_search_attributes(request)
    return [name for name in SEARCH_ATTRIBUTES if name not in known.custom_attributes]
