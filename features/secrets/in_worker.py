"""Secrets in a worker: the layer that fills them in."""

from __future__ import annotations

from collections.abc import Iterable

from plansurvive.activities.feature import InWorker, Layer
from plansurvive.activities.tools.tool import Tool
from plansurvive.features.secrets.arguments import SecretArguments
from plansurvive.features.secrets.store import store_of


class Worker(InWorker):
    """The secrets of a worker's settings."""

    feature = "secrets"

    def layer(self, tools: Iterable[Tool]) -> Layer | None:  # noqa: ARG002
        """Fills in what secrets.toml allows, and refuses what it does not. Raises SettingError."""
        return SecretArguments(store_of(self.settings))


IN_WORKER = Worker
