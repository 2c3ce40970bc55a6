"""A tool of a server that is not what it was when its plan was checked: what then holds no longer, and what is told.

The definition of a tool is part of each call's digest (`plans.run.step_call`), so a decision about a call of the old
tool is none about a call of the new one. What was given in advance falls as well: waivers, `--yes`, remembered
approvals. All further calls of the tool in this run ask, once each, or once for all if that is what a person then says.

The tool's definition is part of a call's digest, so changed tools need no second mechanism; what has no digest is
voided by name, also the operator's `never`, which was about the tool as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plansurvive.features.tool_servers.listed_tools import definitions
from plansurvive.features.tool_servers.model import ChangedTool, KnownTools
from plansurvive.plans.activity_io import Return
from plansurvive.plans.change_log import MAX_CHARACTERS, Revision, logged
from plansurvive.plans.definition.arguments import argument_problems
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Plan, Step, ToolSpec
from plansurvive.plans.model.opaque import PLAN
from plansurvive.plans.run import Result, Run
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.run.step_call import upcoming
from plansurvive.plans.text.lists import some
from plansurvive.plans.text.safe_text import line

TOOL_CHANGED = "TOOL_CHANGED"
"""Code of an attempt whose worker found another definition than the plan was checked with; nothing was called."""
MAX_SENTENCE = 900
MAX_NAMED = 12
"""Arguments that a sentence names."""
CALL = "call"
"""Mark of `Run.edited` (`plans.execution.approvals`): the call of a step is another one."""


def _for_start(plan: Plan, tools: Mapping[str, ToolSpec]) -> KnownTools | None:
    """The definitions of the tools of servers that the plan uses; of all, if it runs other plans."""
    used = {step.tool for _, step in walk(plan)} | {step.undo.tool for _, step in walk(plan) if step.undo is not None}
    known = definitions(tools)
    known = known if PLAN in used else {name: definition for name, definition in known.items() if name in used}
    return KnownTools(definitions=known) if known else None


def _for_next(run: Run, rerun: bool) -> KnownTools | None:  # noqa: ARG001
    known = definitions(run.facts.tools)
    return KnownTools(definitions=known) if known else None


def _for_child(run: Run, step: Step, plan: Plan | None) -> KnownTools | None:  # noqa: ARG001
    known = run.options.part(KnownTools)
    return known if known.definitions else None


def _checked(run: Run, now: datetime) -> None:
    """Compare the tools that a worker reported with those that the plan was checked with before its start."""
    for name, definition in run.options.part(KnownTools).definitions.items():
        spec = run.facts.tools.get(name)
        if spec is not None and spec.definition and spec.definition != definition:
            _tell(run, spec, f"{name} is not as it was when the plan was checked before it was started", now)


def _failed(run: Run, step: Step, left: Return, failure: Result, now: datetime) -> bool:
    """Take over the definition that an attempt of the step found. A person decides, if the tool takes its arguments."""
    try:
        spec = left.part(ChangedTool).tool
    except ValidationError:  # whoever completes an activity by hand may write anything
        spec = None
    if spec is not None:
        take(run, step, spec, now)
    if failure.code != TOOL_CHANGED or step.tool not in run.tools_changed:
        return False
    return not argument_problems(run.facts.tools[step.tool], upcoming(run, step).call.args, run.steps)


def take(run: Run, step: Step, spec: ToolSpec, now: datetime) -> None:
    """Take over the definition of a step's tool that its worker found; nothing of another tool or server."""
    known = run.facts.tools.get(step.tool)
    if known is None or not known.server or spec.name != step.tool or spec.server != known.server:
        return
    run.edited[step.id] = CALL
    if spec.definition == known.definition:  # another step has found it
        return
    more = {"parts": known.parts, "withheld": known.withheld, "for_models": known.for_models, "judged": known.judged}
    spec = spec.model_copy(update=more)
    run.facts = run.facts.model_copy(update={"tools": {**run.facts.tools, spec.name: spec}})
    what = "; ".join(differences(known, spec)) or "what its server says of it has changed"
    _tell(run, spec, f"{spec.name} is not as it was when the plan was checked: {what}", now)


def differences(old: ToolSpec, new: ToolSpec) -> Iterator[str]:
    """What differs between two definitions of a tool, in sentences for people; a server's own words are quoted."""
    was, now = _fields(old), _fields(new)
    added, gone = [name for name in now if name not in was], [name for name in was if name not in now]
    other = [name for name in now if name in was and now[name] != was[name]]
    needed = sorted(set(_required(new)) - set(_required(old)))
    for how, names in (("new", added), ("gone", gone), ("changed", other), ("required now", needed)):
        if names:
            yield f"arguments {how}: {some(names, MAX_NAMED, line)}"
    if old.args_schema != new.args_schema and not (added or gone or other or needed):
        yield "what its arguments may be together has changed"
    if old.value_schema != new.value_schema:
        yield "what it returns has changed"
    if old.asks_because != new.asks_because and new.asks_because:
        yield f"now {new.asks_because}"
    if old.description != new.description:
        yield f"its server now describes it as: {json.dumps(line(new.description)[:300], ensure_ascii=False)}"


def _tell(run: Run, spec: ToolSpec, sentence: str, now: datetime) -> None:
    """Void what was given in advance, and add a version, a line in the change log and one in the log."""
    text = f"{sentence}; approvals of its calls are void"
    run.tools_changed[spec.name] = sentence[:MAX_SENTENCE]
    run.plan = run.plan.model_copy(update={"version": run.plan.version + 1})
    diff = [f"~ tool {spec.name}: {sentence}"[:MAX_CHARACTERS]]
    by = f"server {spec.server}"
    revision = Revision(version=run.plan.version, by=by, time=now, reason=TOOL_CHANGED, diff=diff)
    run.revisions = logged(run.revisions, revision)
    run.note(LogKind.CHANGED, text[:MAX_SENTENCE], now, code=TOOL_CHANGED, subject=spec.name)


def _fields(spec: ToolSpec) -> Mapping[str, Any]:
    found = spec.args_schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _required(spec: ToolSpec) -> list[str]:
    found = spec.args_schema.get("required")
    return [str(name) for name in found] if isinstance(found, list) else []


RULES = Rules(
    "tool_servers",
    for_start=_for_start,
    for_next=_for_next,
    for_child=_for_child,
    checked=_checked,
    failed=_failed,
)
