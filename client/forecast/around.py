"""What can be found out about a call without making it: earlier results, and what it would do to a file.

Files are read as they are now; what steps before it would write is laid over them, as far as it is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plansurvive.activities.attempt.environment import ToolEnvironment, sandbox_of
from plansurvive.activities.caching.results import Results
from plansurvive.activities.lifecycle.load_plan import ChildPlanLoader
from plansurvive.activities.tools.registry import load_tools
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.client.decide.call_diff import CHANGING, CallDiff, call_diff, changed_text, diff_of
from plansurvive.plans.activity_io import Call
from plansurvive.plans.caching.entries import Output
from plansurvive.plans.caching.why import reasons_of
from plansurvive.plans.children.orders import Source
from plansurvive.plans.children.state import LoadedPlan, LoadRequest
from plansurvive.plans.forecast.around import Taken
from plansurvive.plans.forecast.models import ForeseenChange
from plansurvive.plans.model import Retry, Step
from plansurvive.plans.model.caching import CacheNote, CacheOrder
from plansurvive.plans.views.card import Card
from plansurvive.runtime.connect import storage
from plansurvive.runtime.keys.at_rest import AtRest
from plansurvive.runtime.keys.of_settings import ring_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore


@dataclass
class Machine:
    """A workspace of this machine, and what its workers keep."""

    settings: Settings
    workspace: str
    _tools: Mapping[str, Tool] = field(init=False)
    _results: Results | None = field(init=False)
    _made: dict[str, Output] = field(default_factory=dict)
    """Files that earlier results would re-create."""
    _texts: dict[str, str | None] = field(default_factory=dict)
    """Files as steps before would leave them; None: deleted."""

    def __post_init__(self) -> None:
        self._tools = load_tools(self.settings.tools)
        self._results = Results.of(self.settings, self._tools.values(), AtRest(ring_of(self.settings)))
        self._values = ValueStore(storage(self.settings), self.settings.inline_bytes)
        self._effects, self._sandbox = Effects.of(self.settings), sandbox_of(self.settings)

    def earlier(self, step_id: str, step: Step, args: Mapping[str, Any], order: CacheOrder) -> Taken | str:
        """The earlier result that the call would take; else why there is none."""
        tool = self._tools.get(step.tool)
        if self._results is None:
            return "PLANS_CACHE is off"
        if tool is None:
            return "its tool is a server's"
        call = Call(
            args=dict(args), plan_id="", step_id=step_id, key="", workspace=self.workspace, timeout=1.0, retry=Retry(),
            repeatable=step.repeatable if step.repeatable is not None else tool.spec.repeatable, cache=order,
        )  # fmt: skip
        context = ToolContext(call, Workspace(self.workspace), self._effects, tool.spec.name, sandbox=self._sandbox)
        entry, note = self._results.of_call(tool, context, args, order, self._values).foreseen(self._made)
        if entry is None:
            return _sentence(note)
        self._made |= {each.path: each for each in entry.outputs}
        return Taken(entry.place, entry.value, is_known=entry.large is None)

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
        return _change(found)

    def load(self, workspace: str, source: Source) -> LoadedPlan:
        """The content of a plan file or a template, read by the rules of the worker. Raises PlanError."""
        loader = ChildPlanLoader(self._values, self.settings.state_dir, ToolEnvironment())
        return loader.loaded(LoadRequest(workspace=workspace, **{source.kind: source.value}))

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


def _change(found: CallDiff) -> ForeseenChange:
    return ForeseenChange(path=found.path, kind=found.kind, note=found.note, rows=found.rows)


def _sentence(note: CacheNote) -> str:
    return "; ".join(each.removeprefix("its tool was called: ") for each in reasons_of(note)[:3])
