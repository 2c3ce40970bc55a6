"""The telemetry of one worker process, as the settings ask for it; part of the composition root, which alone uses it.

Nothing is imported or started for what is off.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import SecretStr
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.attempt.redaction import Secrets, Seen
from plansurvive.runtime.connect import Connection
from plansurvive.runtime.settings import Settings

if TYPE_CHECKING:
    from plansurvive.runtime.telemetry.instruments import Instruments
    from plansurvive.runtime.telemetry.span_export import SpanExport

TRIES = 5
"""Free ports that are tried: another program may take one before it is used."""


class WorkerTelemetry:
    """Made before the worker connects, as the SDK's metrics belong to the runtime of its connection."""

    def __init__(self, settings: Settings, child: int | None = None, masked: Sequence[Seen] = ()) -> None:
        """`child`: number of this process in a pool. `masked`: what features mask. Raises SettingError."""
        self._settings, self._child = settings, child
        self._logs = settings.log == "json"
        self._spans: SpanExport | None = None
        self._metrics: Instruments | None = None
        if self._logs:
            from plansurvive.runtime.telemetry.json_logs import install

            install(settings.log_level, _secrets(settings, masked).out_of)
        if settings.otel:
            from plansurvive.runtime.telemetry.of_settings import exporter

            self._spans = exporter()
        if settings.metrics:
            self._metrics = _served(settings, settings.metrics, child)

    def observed(self, connection: Connection) -> Connection:
        """The connection, for a worker whose activities are observed; the same one if all telemetry is off."""
        if not (self._logs or self._spans or self._metrics):
            return connection
        from plansurvive.activities.telemetry.observer import Observer

        options = connection.client.config()
        observer = Observer(self._settings, self._spans, self._metrics, self._logs)
        options["interceptors"] = [*options["interceptors"], observer]
        return replace(connection, client=Client(**options))

    def counted(self, worker: Worker) -> Worker:
        """The worker, of which the workflow tasks that its code fails are counted."""
        if self._metrics is not None:
            from plansurvive.runtime.telemetry.failed_tasks import count

            count(worker, self._metrics.failed_task)
        return worker

    @asynccontextmanager
    async def running(self, client: Client, indexed: bool) -> AsyncIterator[None]:
        """Until the worker has stopped: how plans stand, if the server has an index of them; then the last spans."""
        look: asyncio.Task[None] | None = None
        if self._metrics is not None and indexed and self._child in (None, 1):
            from plansurvive.runtime.telemetry.plan_gauges import PlanGauges

            look = asyncio.create_task(PlanGauges(client, self._metrics).keep())
        try:
            yield
        finally:
            if look is not None:
                look.cancel()
            if self._spans is not None:
                await self._spans.flush()


def _served(settings: Settings, address: str, child: int | None) -> Instruments:
    """The metrics of this process, served at the address; of a child of a pool, at one that its parent is told."""
    from temporalio.runtime import Runtime

    from plansurvive.runtime.telemetry.instruments import Instruments, free_address, prometheus
    from plansurvive.runtime.telemetry.metrics_page import announce, taken

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
    from plansurvive.runtime.telemetry.of_settings import collector_secrets

    token = settings.temporal.get("TEMPORAL_API_KEY")
    known = [settings.openai_api_key, SecretStr(token) if token else None]
    return Secrets([*known, *collector_secrets(os.environ)], masked)
