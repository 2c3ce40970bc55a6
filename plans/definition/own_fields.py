"""The fields of plan files by name: of what each is one, however the parts of its name are joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from plansurvive.plans.definition.near_names import folded
from plansurvive.plans.model import Plan, Step


def _models(kind: Any) -> Iterator[type[BaseModel]]:
    """The models in the type of a field."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models(part)


def names_of(model: type[BaseModel]) -> list[str]:
    """The fields of a model as files name them."""
    return [info.alias or name for name, info in model.model_fields.items()]


MODELS: dict[str, type[BaseModel]] = {"": Plan} | {
    info.alias or name: model
    for owner in (Plan, Step)
    for name, info in owner.model_fields.items()
    for model in _models(info.annotation)
}
"""By the name of its field, each model in a plan file."""
INNER = {
    owner: names_of(model)
    for owner, model in MODELS.items()
    if model not in (Plan, Step) and owner not in ("inputs", "defaults")
}
"""By field that is an object, or a list of such, their fields."""
_OWNERS = INNER | {"defaults": names_of(MODELS["defaults"])}
_OF_PLAN, _OF_STEP = names_of(Plan), names_of(Step)
_OF_WHOLE = frozenset(_OF_PLAN) - {"inputs", "outputs"}  # which may be meant as those of a step
_LISTS = frozenset({"catch", "switch"})
_OURS = {folded(name): name for names in (*_OWNERS.values(), _OF_PLAN, _OF_STEP) for name in names}


def named_so(name: str) -> str:
    """The field whose name it is, with its parts joined in another way; the name itself if there is none."""
    return _OURS.get(folded(name), name)


def place_of(name: str, model: type[BaseModel], parents: Sequence[str]) -> str:
    """Where a field belongs that the model does not have; empty if it is none.

    `parents`: the fields with models that it is written in.
    """
    owner = parents[-1] if parents else ""
    if model is Plan and name in _OF_STEP:
        return f"'{name}' is a field of steps, and not of the plan: indent it like the other fields of its step"
    if owner == "inputs":
        return ""
    of = names_of(model)
    found = next((each for each in (*of, *_OWNERS) if name in _OWNERS.get(each, ())), "")
    inside = f"[{{..., {name}: ...}}]" if found in _LISTS else f"{{..., {name}: ...}}"
    if model in (Plan, Step) and found in of:
        whose = "step" if model is Step else "plan"
        return f"'{name}' is a field of `{found}`, and not of the {whose}: `{found}: {inside}`"
    if model is Step and name in _OF_WHOLE:
        return f"'{name}' is a field of the plan, and not of steps: write it beside `steps`"
    if model in (Plan, Step):
        whose = "the plan" if found in _OF_PLAN else "a step"
        return f"'{name}' is a field of `{found}`, which {whose} has: `{found}: {inside}`" if found else ""
    if name in _OF_STEP and "steps" in of:
        inside = f"{{steps: [{{id: ..., {name}: ...}}]}}"
        inside = f"[{inside}]" if owner in _LISTS else inside
        return f"'{name}' is a field of steps, and not of `{owner}`: `{owner}: {inside}`"
    if name in _OF_STEP:
        where = "write it in each step" if owner == "defaults" else f"write it beside `{owner}`"
        return f"'{name}' is a field of steps, and not of `{owner}`: {where}"
    if name in _OF_PLAN:
        return f"'{name}' is a field of the plan, and not of `{owner}`: write it beside `steps`"
    return f"'{name}' is a field of `{found}`, and not of `{owner}`" if found else ""


def beside_args(name: str) -> str:
    """Where a field of steps belongs that is written as an argument of a tool; empty if it is none."""
    own = named_so(name)
    return f"'{own}' is a field of the step: write it beside `args`" if own in _OF_STEP and own != "args" else ""
