"""Lists templates: for people, and as text for a model that may use them in a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from plansurvive.features.templates.store import Store
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Input, Value

MAX_FOR_MODEL = 50
"""Templates that a model is told of."""
TEXT_FOR_MODEL = 200
"""Characters of a description or a default that a model is shown."""
INPUTS_FOR_MODEL = 30


class Listed(Value):
    """One template in a list, at its newest version."""

    name: str
    where: Literal["project", "user"]
    hash: str = ""
    saved: str = Field(default="", description="When the newest version was saved, ISO 8601.")
    versions: int = 0
    description: str = ""
    inputs: dict[str, Input] = Field(default_factory=dict)
    problem: str = Field(default="", description="Why it cannot be read.")


def listed(known: Sequence[Store], limit: int | None = None) -> list[Listed]:
    """All templates of these stores, or the first ones; one that cannot be read says why."""
    names = [(store, name) for store in known for name in store.names()]
    return [_listed(store, name) for store, name in names[:limit]]


def text_for_model(known: Sequence[Store], redacted: Callable[[str], str]) -> str:
    """One line per template that can be used by its name: what it is for, its inputs. Empty if there are none.

    `redacted` takes secrets out of a text; it comes before a text is cut, as half of a secret would not be recognised.
    """
    found = [each for each in listed(known, 2 * MAX_FOR_MODEL) if not each.problem]
    hashes: dict[str, set[str]] = {}
    for each in found:
        hashes.setdefault(each.name, set()).add(each.hash)
    usable = {each.name: each for each in found if len(hashes[each.name]) == 1}
    return "\n".join(_row(each, redacted) for each in list(usable.values())[:MAX_FOR_MODEL])


def _row(each: Listed, redacted: Callable[[str], str]) -> str:
    def short(text: str) -> str:
        return " ".join(redacted(text).split())[:TEXT_FOR_MODEL]

    def one(name: str, declared: Input) -> str:
        default = "required"
        if declared.default is not None:
            default = f"default {short(json.dumps(declared.default, ensure_ascii=False))}"
        about = f": {short(declared.description)}" if declared.description else ""
        return f"{short(name)} ({declared.type}, {default}){about}"

    inputs = [one(name, declared) for name, declared in list(each.inputs.items())[:INPUTS_FOR_MODEL]]
    about = f": {short(each.description)}" if each.description else ""
    return f"- {each.name}{about} | inputs: {'; '.join(inputs) or 'none'}"


def _listed(store: Store, name: str) -> Listed:
    try:
        index = store.index(name)
        if index is None:
            return Listed(name=name, where=store.where, problem="it was deleted in the meantime")
        newest = index.versions[-1]
        found = store.read(name, newest.hash)
    except PlanError as error:
        return Listed(name=name, where=store.where, problem=error.message)
    return Listed(
        name=name,
        where=store.where,
        hash=newest.hash,
        saved=newest.saved,
        versions=len(index.versions),
        description=found.description,
        inputs=found.inputs,
    )
