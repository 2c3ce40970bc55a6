"""Notifications in a worker: the activities that deliver them, and what notify.toml says of all its plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plansurvive.activities.feature import InWorker
from plansurvive.features.notify.deliver import Notifier
from plansurvive.features.notify.model import MoreRules
from plansurvive.features.notify.targets import read_targets
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.model.parts import Part


class Worker(InWorker):
    """The targets of a worker's settings."""

    feature = "notify"

    def activities(self) -> Sequence[Callable[..., object]]:
        """`tell` and `notify`."""
        return Notifier(self.settings, self.fault, self.others.views).activities

    def facts(self, _: CheckRequest) -> Part | None:
        """The rules for all plans of the worker. Raises SettingError."""
        rules = read_targets(self.settings).default
        return MoreRules(rules=rules) if rules else None


IN_WORKER = Worker
