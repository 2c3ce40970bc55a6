"""Connects a Temporal client: chooses the server from the settings, and names it in errors.

In this order: TEMPORAL_ADDRESS or a profile; a server already running on localhost:7233 (skipped with
PLANS_SERVER=embedded); the embedded server of this state directory, started if needed. Attempts time out after 10
seconds. API key and TLS settings apply to a configured server only, not to one found on this machine.
The namespace applies to all of them, and the embedded server registers it.

Messages on loopback are not compressed: gzip, the SDK's choice, only costs CPU there. The address decides and not a
measurement, since it is known before connecting.
"""

from __future__ import annotations

import asyncio
import getpass
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, cast

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.converter import StorageDriver
from temporalio.envconfig import ClientConfig
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode, ServiceClient, TLSConfig

from plansurvive.runtime import server as embedded
from plansurvive.runtime.base.wait import until
from plansurvive.runtime.buckets import gcs_driver, s3_driver
from plansurvive.runtime.connection import KEEP_ALIVE, Following, Revive
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.feature import interceptors_of, sealing_of
from plansurvive.runtime.setting_groups.web import is_loopback
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.storage import LocalDirectory, converter
from plansurvive.runtime.versions.layout import check as check_layout

DEFAULT_NAMESPACE = "default"
LOCAL = f"localhost:{embedded.PORT}"
SECONDS = 10.0
LOCAL_SECONDS = 3.0
TLS = ("true", "false", "1", "0")
"""What TEMPORAL_TLS may be."""
STARTING = "not healthy yet", "ConnectionReset"
"""Parts of the error messages of a server that is still starting."""


class Origin(Enum):
    """How the server was found."""

    CONFIGURED = "TEMPORAL_ADDRESS or a profile"
    LOCAL = "already running on this machine"
    EMBEDDED = "started by plan"


@dataclass(frozen=True)
class Connection:
    """A connected client, with the server's address and origin."""

    client: Client
    address: str
    origin: Origin
    ui: str | None = None
    """Base URL of the Temporal UI, if known."""
    is_new: bool = False
    """Whether it did not run before this process looked for it."""

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the server listens on a loopback address."""
        return is_loopback(_host(self.address))

    def workflow_link(self, workflow_id: str) -> str | None:
        """URL of a workflow in the Temporal UI; None if the UI's address is unknown."""
        return embedded.workflow_link(self.ui, self.client.namespace, workflow_id) if self.ui else None


async def connect(settings: Settings, say: Callable[[str], None] = lambda _: None) -> Client:
    """A client of the server that the settings choose. Raises NotConnected or SettingError."""
    return (await reach(settings, say, revives=True)).client


async def reach(
    settings: Settings, say: Callable[[str], None] = lambda _: None, *, revives: bool = False
) -> Connection:
    """As `connect`, with details of the server. `say` announces slow work.

    `revives`: an embedded server that dies while the connection is in use is started again.
    """

    async def revive() -> None:
        say("The Temporal server has ended unexpectedly; starting it again.")
        await embedded.ensure(settings, say)

    kept = revive if revives else None
    found = await find(settings, kept)
    if found is not None:
        return found
    return replace(await _embedded(settings, await embedded.ensure(settings, say), kept), is_new=True)


async def find(settings: Settings, revive: Revive | None = None) -> Connection | None:
    """As `reach`, but starts nothing: None if the choice is the embedded server and it is not running."""
    config = _config(settings)
    if "target_host" in config or "TEMPORAL_PROFILE" in settings.temporal:
        address = _checked_address(str(config.get("target_host", LOCAL)))
        client = await _client(settings, config, address, SECONDS)
        own = embedded.last(settings)
        if own and own.address == address:  # a worker is configured with the address of the embedded server
            client = _following(client, settings)
        return Connection(client, address, Origin.CONFIGURED, _usual_ui(address))
    own = embedded.recorded(settings)
    is_on_usual_port = own is not None and own.address == f"{embedded.HOST}:{embedded.PORT}"
    if settings.server == "auto" and not is_on_usual_port:
        running = await _already_running(settings, config)
        if running:
            return running
    return await _embedded(settings, own, revive) if own and own.accepts() else None


async def _embedded(settings: Settings, server: embedded.Server, revive: Revive | None) -> Connection:
    client = await _client(settings, _namespace(_config(settings)), server.address, SECONDS, is_ours=True)
    return Connection(_following(client, settings, revive), server.address, Origin.EMBEDDED, server.ui)


def _following(client: Client, settings: Settings, revive: Revive | None = None) -> Client:
    """The client, with a connection that finds the embedded server again when it was started anew."""

    async def ready(service: ServiceClient) -> bool:
        return await is_ready(Client(service, namespace=client.namespace))

    service = Following(client.service_client, embedded.record(settings), ready, revive)
    options = client.config()
    options["service_client"] = service
    return Client(**options)


async def _already_running(settings: Settings, config: Mapping[str, Any]) -> Connection | None:
    """The server on the default port; None if nothing listens there, or something that is not Temporal."""
    if not embedded.listens("localhost", embedded.PORT):
        return None
    try:
        client = await _client(settings, _namespace(config), LOCAL, LOCAL_SECONDS)
    except NotConnected as error:
        if error.code == "NO_NAMESPACE":
            raise
        return None
    return Connection(client, LOCAL, Origin.LOCAL, _usual_ui(LOCAL))


def _namespace(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of the connection options, what applies to a server of this machine too."""
    return {"namespace": config.get("namespace", DEFAULT_NAMESPACE)}


async def healthy(seconds: float, **options: Any) -> Client:
    """Connect, and wait for a server that is still starting: it listens before it is ready to answer.

    Raises TimeoutError if it is not ready within `seconds`, RuntimeError if the connection fails.
    """

    async def connected() -> Client | None:
        try:
            return await Client.connect(**options)
        except RuntimeError as error:  # what the SDK raises for every failure to connect
            if any(sign in str(error) for sign in STARTING):
                return None
            raise

    async with asyncio.timeout(seconds):
        return cast(Client, await until(connected, every=0.1))


async def has_namespace(client: Client) -> bool:
    """Whether the server knows the client's namespace."""
    request = DescribeNamespaceRequest(namespace=client.namespace)
    return await _is_found(client.workflow_service.describe_namespace(request))


async def is_ready(client: Client) -> bool:
    """Whether a server that has just started knows the client's namespace and can use it.

    It registers its default namespace only after it accepts connections. Describing a namespace reads the store;
    counting workflows, like everything else, reads a cache of it.
    """
    return await has_namespace(client) and await _is_found(client.count_workflows())


async def _is_found(request: Awaitable[object]) -> bool:
    try:
        await request
    except RPCError as error:
        return error.status is not RPCStatusCode.NOT_FOUND  # a key may permit workflows but not this request
    return True


def compression(settings: Settings, address: str, usual: GrpcCompression = GrpcCompression.GZIP) -> GrpcCompression:
    """How messages to and from the server at HOST:PORT are compressed, by PLANS_GRPC_COMPRESSION.

    With `auto`, messages that never leave this machine are not compressed: that costs more time than it saves. `usual`
    is for all other servers; the SDK's own default is gzip.
    """
    if settings.grpc_compression == "auto":
        return GrpcCompression.NONE if is_loopback(_host(address)) else usual
    return GrpcCompression.NONE if settings.grpc_compression == "none" else GrpcCompression.GZIP


def _config(settings: Settings) -> Mapping[str, Any]:
    """Connection options from the TEMPORAL_* variables and the profile. Raises SettingError if they cannot be read."""
    said = settings.temporal.get("TEMPORAL_TLS", "").strip().lower()
    if said not in ("", *TLS):  # the SDK takes any other text, `off` as well, for `true`
        raise SettingError({"TEMPORAL_TLS": f"{settings.temporal['TEMPORAL_TLS']!r} is none of {', '.join(TLS)}"})
    file = settings.temporal.get("TEMPORAL_CONFIG_FILE", "")
    if file and not Path(file).exists():  # the SDK would take it for an empty one, and another server for this one
        raise SettingError({"TEMPORAL_CONFIG_FILE": f"there is no file {file}; correct the path, or unset it"})
    try:
        config = ClientConfig.load_client_connect_config(override_env_vars=settings.temporal)
    except OSError as error:  # a certificate or a key
        path = str(error.filename)
        name = next((name for name, value in settings.temporal.items() if value == path), "TEMPORAL_PROFILE")
        what = f"there is no file {path}" if isinstance(error, FileNotFoundError) else f"{path}: {error.strerror}"
        raise SettingError({name: f"{what}; name a file that can be read"}) from error
    except RuntimeError as error:
        name = next((n for n in ("TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE") if n in settings.temporal), "TEMPORAL_*")
        file = file or "~/.config/temporalio/temporal.toml"
        way = f"; name one of {file}, or leave it out" if name == "TEMPORAL_PROFILE" else ""
        raise SettingError({name: f"{error}{way}"}) from error
    tls = config.get("tls")
    if isinstance(tls, TLSConfig) and (tls.client_cert is None) != (tls.client_private_key is None):
        pair = "TEMPORAL_TLS_CLIENT_CERT_PATH", "TEMPORAL_TLS_CLIENT_KEY_PATH"
        given, lacks = pair if tls.client_cert is not None else reversed(pair)
        raise SettingError({lacks: f"it is missing; {given} needs it, or unset both"})
    return config


def _checked_address(address: str) -> str:
    if "://" in address:
        text = f"{address!r} is a URL; write HOST:PORT alone, as in 127.0.0.1:7233 (TLS: set TEMPORAL_TLS=true)"
        raise SettingError({"TEMPORAL_ADDRESS": text})
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise SettingError({"TEMPORAL_ADDRESS": f"{address!r} is not HOST:PORT with a port from 1 to 65535"})
    return address


def storage(settings: Settings) -> StorageDriver:
    """The driver for data too large for history: a directory, or a bucket: PLANS_STORAGE=s3://BUCKET or gs://BUCKET.

    With PLANS_KEYS it encrypts. Raises SettingError if the keys cannot be read, WrongLayout for a newer directory.
    """
    sealing = sealing_of(settings)
    check_layout(settings.state_dir)
    if settings.storage == "local":
        return LocalDirectory(settings.state_dir / "values", sealing)
    kind, _, bucket = settings.storage.partition("://")
    return gcs_driver(bucket, sealing) if kind == "gs" else s3_driver(bucket, sealing)


def storage_of(client: Client, settings: Settings) -> StorageDriver:
    """The driver that the client stores large payloads with; step values go to the same place. Raises as `storage`."""
    external = client.data_converter.external_storage
    return external.drivers[0] if external else storage(settings)


async def _client(
    settings: Settings, config: Mapping[str, Any], address: str, seconds: float, *, is_ours: bool = False
) -> Client:
    """A client of a healthy server. `is_ours`: an embedded server, which may still be creating its namespace."""
    identity = f"{_user()}@{socket.gethostname()}"
    data_converter = converter(storage(settings), settings.external_bytes, sealing_of(settings))
    options: dict[str, Any] = {**config, "target_host": address, "identity": identity, "data_converter": data_converter}
    options["grpc_compression"] = compression(settings, address)
    if _host(address) == embedded.HOST:
        options["keep_alive_config"] = KEEP_ALIVE
    options["interceptors"] = interceptors_of(settings)
    reason = f"no answer within {seconds:.0f} s"
    try:
        async with asyncio.timeout(seconds):
            client = await healthy(seconds, **options)
            if is_ours:
                await _register_namespace(client)
                await until(lambda: is_ready(client), every=0.1)
            else:
                await _require_namespace(client, address)
            return client
    except TimeoutError:
        pass
    except RuntimeError as error:  # what the SDK raises for every failure to connect
        reason = _reason(str(error))
    raise NotConnected(
        f"No Temporal server could be reached at {address}: {reason}. Start it, or set TEMPORAL_ADDRESS to a "
        "running server; with neither TEMPORAL_ADDRESS nor a profile, `plan` starts an embedded server."
    )


async def _register_namespace(client: Client) -> None:
    """Register the client's namespace on the embedded server, which by itself registers the default one only.

    Histories are kept for as long as in that one. Raises SettingError for a name that the server refuses.
    """
    if client.namespace == DEFAULT_NAMESPACE or await has_namespace(client):
        return
    usual = Client(client.service_client, namespace=DEFAULT_NAMESPACE)
    await until(lambda: has_namespace(usual), every=0.1)
    kept = await usual.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=DEFAULT_NAMESPACE))
    request = RegisterNamespaceRequest(
        namespace=client.namespace,
        workflow_execution_retention_period=kept.config.workflow_execution_retention_ttl,
    )
    try:
        await client.workflow_service.register_namespace(request)
    except RPCError as error:
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            raise SettingError({"TEMPORAL_NAMESPACE": f"{client.namespace!r}: {error.message}"}) from error
        if error.status is not RPCStatusCode.ALREADY_EXISTS:  # another command was faster
            raise


async def _require_namespace(client: Client, address: str) -> None:
    if not await has_namespace(client):
        raise NotConnected(
            f"There is no namespace '{client.namespace}' at {address}. Create it with `temporal operator namespace "
            f"create --namespace {client.namespace}`, or set TEMPORAL_NAMESPACE to an existing one.",
            "NO_NAMESPACE",
        )


def _reason(text: str) -> str:
    known = {"ConnectionRefused": "connection refused", "dns error": "unknown host", "Unauthenticated": "key refused",
             "PrivateKeyParseError": "the key of TEMPORAL_TLS_CLIENT_KEY_PATH is not a private key in PEM"}  # fmt: skip
    if short := next((short for sign, short in known.items() if sign in text), ""):
        return short
    if "after connection" in text and "transport::Error" in text:
        return (
            "something answers there, but it does not speak gRPC. Is it an HTTP port, such as that of the Temporal UI?"
            " The server's own port is mostly 7233; TLS needs TEMPORAL_TLS=true"
        )
    return text.splitlines()[0][:300] if text else ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user id without a name
        return "unknown"


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _usual_ui(address: str) -> str | None:
    """URL of the UI of a server on this machine: by default 1000 ports up, if something listens there."""
    host, port = _host(address), int(address.rpartition(":")[2]) + 1000
    if host not in ("localhost", "127.0.0.1") or port > 65_535 or not embedded.listens("127.0.0.1", port):
        return None
    return f"http://127.0.0.1:{port}"
