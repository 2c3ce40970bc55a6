"""Records which Temporal namespaces share a state directory: one file per namespace a worker has served from it.

A namespace is identified by its server-assigned id, which is the same under every address. `plan prune` reads the
histories of one server only, so it must know when values may belong to others.
"""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.runtime.settings import Settings

FOLDER = "namespaces"


async def remember(settings: Settings, client: Client, address: str) -> None:
    """Record that the state directory may hold values of the client's namespace. Raises OSError."""
    file = settings.state_dir / FOLDER / await _identity(client)
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(f"namespace '{client.namespace}' at {address}\n")


async def others(settings: Settings, client: Client) -> list[str]:
    """The other namespaces whose values may be in the state directory, as text with the file that records each."""
    own = await _identity(client)
    files = [file for file in sorted((settings.state_dir / FOLDER).glob("*")) if file.name != own]
    return [f"{file.read_text().strip()} ({file})" for file in files]


async def _identity(client: Client) -> str:
    """The id of the client's namespace; its name if the server does not allow the request."""
    try:
        request = DescribeNamespaceRequest(namespace=client.namespace)
        found = await client.workflow_service.describe_namespace(request)
    except RPCError:
        return client.namespace
    return found.namespace_info.id or client.namespace
