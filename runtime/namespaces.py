"""Which servers the values of a state directory belong to: a file for each namespace that a worker has served from it.

A namespace is known by the id its server gave it, the same under every address. `prune` reads histories of one server
only, so it must know when there are others.
"""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from runtime.settings import Settings

FOLDER = "namespaces"


async def remember(settings: Settings, client: Client, address: str) -> None:
    """Note that values of the client's namespace may come to be in the state directory. Raises OSError."""
    file = settings.state_dir / FOLDER / await _identity(client)
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(f"namespace '{client.namespace}' at {address}\n")


async def others(settings: Settings, client: Client) -> list[str]:
    """The other namespaces whose values may be in the state directory, as text; each with the file that says so."""
    own = await _identity(client)
    files = [file for file in sorted((settings.state_dir / FOLDER).glob("*")) if file.name != own]
    return [f"{file.read_text().strip()} ({file})" for file in files]


async def _identity(client: Client) -> str:
    """The id of the client's namespace; its name where the server does not tell."""
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        found = await client.workflow_service.describe_namespace(request)
    except RPCError:
        return client.namespace
    return found.namespace_info.id or client.namespace
