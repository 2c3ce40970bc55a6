"""`plan prune` as a function, for `client.runs`; `runtime.upkeep.prune` decides what may go."""

from __future__ import annotations

from plansurvive.runtime.upkeep.prune import Pruned, PruneRefused, prune

__all__ = ["PruneRefused", "Pruned", "prune"]
