"""The telemetry of one worker process, as the settings ask for it.

Nothing is imported or started for what is off.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import SecretStr
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.feature import InProcess
from plansurvive.activities.values.redaction import Secrets, Seen
from plansurvive.features.telemetry.settings import TelemetrySettings
from plansurvive.runtime.connect import Connection
from plansurvive.runtime.settings import Settings

if TYPE_CHECKING:
    from plansurvive.features.telemetry.instruments import Instruments
    from plansurvive.features.telemetry.span_export import SpanExport

TRIES = 5
"""Free ports that are tried: another program may take one before it is used."""


class Process(InProcess):
    """Made before the worker connects, as the SDK's metrics belong to the runtime of its connection."""

    feature = "telemetry"

    def __init__(self, settings: Settings, child: int | None, masked: Sequence[Seen]) -> None:
        """Raises SettingError."""
        super().__init__(settings, child, masked)
        own = settings.of(TelemetrySettings)
        self._logs = own.log == "json"
        self._spans: SpanExport | None = None
        self._metrics: Instruments | None = None
        if self._logs:
            from plansurvive.features.telemetry.json_logs import install

            install(own.log_level, _secrets(settings, masked).out_of)
        if own.otel:
            from plansurvive.features.telemetry.connection import exporter

            self._spans = exporter()
        if own.metrics:
            self._metrics = _served(settings, own.metrics, child)

    def connected(self, connection: Connection) -> Connection:
        """The connection, for a worker whose activities are observed; the same one if all telemetry is off."""
        if not (self._logs or self._spans or self._metrics):
            return connection
        from plansurvive.features.telemetry.observer import Observer

        options = connection.client.config()
        observer = Observer(self.settings, self._spans, self._metrics, self._logs)
        options["interceptors"] = [*options["interceptors"], observer]
        return replace(connection, client=Client(**options))

    def made(self, worker: Worker) -> None:
        """Count the workflow tasks that the code of the worker fails."""
        if self._metrics is not None:
            from plansurvive.features.telemetry.failed_tasks import count

            count(worker, self._metrics.failed_task)

    @asynccontextmanager
    async def running(self, client: Client, indexed: bool) -> AsyncIterator[None]:
        """Until the worker has stopped: how plans stand, if the server has an index of them; then the last spans."""
        look: asyncio.Task[None] | None = None
        if self._metrics is not None and indexed and self.child in (None, 1):
            from plansurvive.features.telemetry.plan_gauges import PlanGauges

            look = asyncio.create_task(PlanGauges(client, self._metrics).keep())
        try:
            yield
        finally:
            if look is not None:
                look.cancel()
            if self._spans is not None:
                await self._spans.flush()

    @staticmethod
    def pool(settings: Settings) -> AbstractAsyncContextManager[None]:
        """Serve the metrics of all processes of a pool at one address. Raises SettingError."""
        from plansurvive.features.telemetry.metrics_page import pool_endpoint

        return pool_endpoint(settings)


IN_PROCESS = Process


def _served(settings: Settings, address: str, child: int | None) -> Instruments:
    """The metrics of this process, served at the address; of a child of a pool, at one that its parent is told."""
    from temporalio.runtime import Runtime

    from plansurvive.features.telemetry.instruments import Instruments, free_address, prometheus
    from plansurvive.features.telemetry.metrics_page import announce, taken

    for left in reversed(range(TRIES)):
        own = address if child is None else free_address()
        try:
            runtime = prometheus(own)
            break
        except ValueError as error:
            if child is None or not left:
                raise taken(own, str(error)) from None
    if child is not None:
        announce(settings, os.getppid(), child, own)
    Runtime.set_default(runtime, error_if_already_set=False)
    return Instruments(runtime)


def _secrets(settings: Settings, masked: Sequence[Seen]) -> Secrets:
    token = settings.temporal.get("TEMPORAL_API_KEY")
    return Secrets([settings.openai_api_key, SecretStr(token) if token else None], masked)
