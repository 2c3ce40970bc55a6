"""Secrets in a worker with a secrets.toml: the layer that fills them in."""

from __future__ import annotations

from collections.abc import Iterable

from plansurvive.activities.feature import InWorker, Layer
from plansurvive.activities.tools.tool import Tool
from plansurvive.features.secrets.arguments import SecretArguments
from plansurvive.runtime.secrets.store import store_of


class Worker(InWorker):
    """The secrets of a worker's settings."""

    feature = "secrets"

    def layer(self, tools: Iterable[Tool]) -> Layer | None:  # noqa: ARG002
        """None without a secrets.toml: calls that name secrets are refused. Raises SettingError."""
        store = store_of(self.settings)
        return SecretArguments(store) if store.entries else None


IN_WORKER = Worker
