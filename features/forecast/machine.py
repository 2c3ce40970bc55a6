"""What can be found out about a call without making it: earlier results, and what it would do to a file.

Files are read as they are now; what steps before it would write is laid over them, as far as it is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from plansurvive.activities.attempt.environment import sandbox_of
from plansurvive.activities.tools.registry import load_tools
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.client.decide.call_diff import CHANGING, call_diff, changed_text, diff_of
from plansurvive.features.forecast.model import Below, ForeseenChange, Taken
from plansurvive.features.forecast.seam import Foresight, Site
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.views.models.card import Card
from plansurvive.runtime.connect import storage
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.sides import sides
from plansurvive.runtime.value_store import ValueStore


@dataclass
class Machine:
    """A workspace of this machine, and what its workers keep."""

    settings: Settings
    workspace: str
    _foresight: Sequence[Foresight] = field(init=False)
    """Of the features."""
    _texts: dict[str, str | None] = field(default_factory=dict)
    """Files as steps before would leave them; None: deleted."""

    def __post_init__(self) -> None:
        values = ValueStore(storage(self.settings), self.settings.inline_bytes)
        tools, sandbox = load_tools(self.settings.tools), sandbox_of(self.settings)
        site = Site(self.settings, self.workspace, tools, values, Effects.of(self.settings), sandbox)
        self._foresight = [side.foresight(site) for side in sides("foresight")]

    def earlier(self, run: Run, step_id: str, step: Step, args: Mapping[str, Any]) -> Taken | str:
        """The earlier result that the call would take; else why there is none, empty if none is asked for."""
        why = list[str]()
        for each in self._foresight:
            match each.earlier(run, step_id, step, args):
                case Taken() as taken:
                    return taken
                case str(reason) if reason:
                    why.append(reason)
        return "; ".join(why)

    def change(self, step_id: str, step: Step, args: Mapping[str, Any]) -> ForeseenChange | None:
        """What the call would do to the file it names; None if it names none, or it is not known."""
        if step.tool not in CHANGING:
            return None
        item = Card(step_id=step_id, tool=step.tool, args=dict(args), kind="approval", workspace=self.workspace)
        path = args.get("path")
        if not isinstance(path, str):
            return None
        name = str(Path(path))
        found = diff_of(item, self._texts[name]) if name in self._texts else call_diff(item)
        if found is None:
            return None
        if found.kind in ("created", "changed", "deleted", "same"):
            self._texts[name] = changed_text(item, self._text(name))
        return ForeseenChange(path=found.path, kind=found.kind, note=found.note, rows=found.rows)

    def below(self, run: Run, step: Step, args: Mapping[str, Any], now: datetime, rules: RuleSet) -> Below | None:
        """The plan that the step would run; None if it runs none. Raises PlanError."""
        found = (each.below(run, step, args, now, rules) for each in self._foresight)
        return next((each for each in found if each is not None), None)

    def at(self, workspace: str) -> Machine:
        """The same for a child plan that works in another directory."""
        return self if workspace == self.workspace else Machine(self.settings, workspace)

    def _text(self, name: str) -> str | None:
        if name in self._texts:
            return self._texts[name]
        try:
            return (Path(self.workspace) / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
