"""The part of a model's plan that the model may decide: without waivers and fields of people and workers, at any depth.

What strict endpoints can only express as text (blocks, alternatives, loops) becomes data again. Nulls are dropped: with
strict schemas, a model cannot omit a field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plansurvive.plans.definition.parsing import Unreadable, parse_json
from plansurvive.plans.llm.schemas import loosened
from plansurvive.plans.model import Plan, Step, ToolSpec
from plansurvive.plans.model.opaque import has_steps
from plansurvive.plans.model.plan import OfPlan, plan_names
from plansurvive.plans.model.step_fields import Llm, aliases, names

Tools = Mapping[str, ToolSpec]

_NOT_OF_A_PLAN = tuple(
    dict.fromkeys(
        spelling
        for name, info in Plan.model_fields.items()
        if name not in plan_names(OfPlan.LLM)
        for spelling in (info.alias or name, name)
    )
)
_NOT_OF_A_STEP = ("status", "result", *dict.fromkeys(aliases(Step, Llm.NEVER) + names(Step, Llm.NEVER)))
_LISTS = ("steps", "finally", "finally_")
"""Fields of a step that are steps."""
_OWNERS = ("switch", "catch", "undo")
"""Fields of a step whose entries have steps."""
_JSON = ("for_each", "forEach", "repeat")
"""Other fields that may be written as JSON text. Any other text in them is an expression."""
MAX_LEVELS = 64
"""Steps inside each other in an answer; deeper ones are left out, and the answer is refused for its depth."""


def own_fields(data: Mapping[str, Any], tools: Tools, notes: list[str]) -> dict[str, Any]:
    """A plan's data as the model may decide it; `notes` receives what was removed."""
    own = _without(data, _NOT_OF_A_PLAN, "the plan", notes)
    if "steps" in own:
        own["steps"] = _steps(own["steps"], "", tools, notes, 1)
    return own


def own_args(tool: str, args: dict[str, Any], tools: Tools, notes: list[str]) -> dict[str, Any]:
    """The arguments of a call as a model may decide them: steps in them cannot have waivers either."""
    if not has_steps(tool):
        return args
    nested = {name: _steps(args[name], f"{tool}.", tools, notes, 1) for name in _LISTS if name in args}
    whole = args.get("plan")  # no argument of the tool, but models write it
    if isinstance(whole, Mapping):
        nested["plan"] = own_fields(whole, tools, notes)
    return {**args, **nested}


def _steps(value: Any, before: str, tools: Tools, notes: list[str], level: int) -> Any:
    steps = _data(value, "[")
    if not isinstance(steps, list) or level > MAX_LEVELS:
        return None if level > MAX_LEVELS else steps
    return [_step(step, before, tools, notes, level) if isinstance(step, Mapping) else step for step in steps]


def _step(step: Mapping[str, Any], before: str, tools: Tools, notes: list[str], level: int) -> dict[str, Any]:
    path = f"{before}{step.get('id')}"
    own = _without(step, _NOT_OF_A_STEP, f"step '{path}'", notes)
    for name in ("requiresApproval", "requires_approval"):
        if own.get(name) is False:
            del own[name]
            notes.append(f"step '{path}': {name} false was removed; only a person can waive an approval")
    _call(own, tools, notes)
    for name in _JSON:
        if name in own:
            own[name] = _data(own[name], "{[")
    for name in _LISTS:
        if name in own:
            own[name] = _steps(own[name], f"{path}.", tools, notes, level + 1)
    for name in _OWNERS:
        if name in own:
            own[name] = _bodies(own[name], f"{path}.", tools, notes, level + 1)
    return own


def _bodies(value: Any, before: str, tools: Tools, notes: list[str], level: int) -> Any:
    """The cases of a switch, the handlers of a catch, or an undo."""
    found = _data(value, "{[")
    if isinstance(found, list):
        return [_body(each, before, tools, notes, level) for each in found]
    return _body(found, before, tools, notes, level)


def _body(value: Any, before: str, tools: Tools, notes: list[str], level: int) -> Any:
    if not isinstance(value, Mapping):
        return value
    own = {name: each for name, each in value.items() if each is not None}
    _call(own, tools, notes)
    if "steps" in own:
        own["steps"] = _steps(own["steps"], before, tools, notes, level)
    return own


def _call(own: dict[str, Any], tools: Tools, notes: list[str]) -> None:
    """Bring the arguments of a call into the form that its tool expects."""
    tool = own.get("tool")
    if isinstance(tool, str) and "args" in own:
        spec = tools.get(tool)
        args = own["args"] if spec is None else loosened(own["args"], spec.args_schema)
        own["args"] = own_args(tool, args, tools, notes) if isinstance(args, dict) else args


def _data(value: Any, opening: str) -> Any:
    """The data in a JSON text; a text that does not begin like it is left as it is."""
    if not isinstance(value, str) or not value.strip().startswith(tuple(opening)):
        return value
    try:
        return parse_json(value)
    except Unreadable:
        return value


def _without(data: Mapping[str, Any], names: Sequence[str], place: str, notes: list[str]) -> dict[str, Any]:
    removed = [name for name in names if data.get(name) is not None]
    notes.extend(f"{place}: {name} was removed; the model may not set it" for name in removed)
    return {name: value for name, value in data.items() if value is not None and name not in names}
