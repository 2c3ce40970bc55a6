"""The activity `load_undo`, with the worker's client."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plansurvive.activities.feature import InWorker
from plansurvive.features.children.load_undo import UndoLoader


class Worker(InWorker):
    """What workflows of the feature call."""

    feature = "children"

    def activities(self) -> Sequence[Callable[..., object]]:
        """`load_undo`."""
        return (UndoLoader(self.client).load_undo,)


IN_WORKER = Worker
