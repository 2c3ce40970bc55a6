"""Which secrets a model may name: those that secrets.toml lets models name, and those that the plan named before.

A model never sees a secret. Naming one is using it, though: so an LLM that writes, revises or repairs a plan is held to
the same rule as an agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.model import Plan, ToolSpec
from plansurvive.plans.secrets.naming import places_of


def for_models(spec: ToolSpec, named: Iterable[str] = ()) -> ToolSpec:
    """The spec with the secrets that a model may name. `named`: those that it found in the plan."""
    found = {name: use for name, use in spec.secrets.items() if use.models or name in named}
    return spec if len(found) == len(spec.secrets) else spec.model_copy(update={"secrets": found})


def tools_for_models(tools: Mapping[str, ToolSpec], before: Plan) -> Mapping[str, ToolSpec]:
    """The tools as a model may use them that revises a plan."""
    if not any(spec.secrets for spec in tools.values()):
        return tools
    named: dict[str, set[str]] = {}
    for _, step in walk(before):
        for tool, args in [(step.tool, step.args), *([(step.undo.tool or "", step.undo.args)] if step.undo else [])]:
            named.setdefault(tool, set()).update(_names(args))
    return {name: for_models(spec, named.get(name, ())) for name, spec in tools.items()}


def refused(spec: ToolSpec | None, args: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """The secrets in a call that a model chose, which it may not name. `before`: the arguments that it replaces."""
    if spec is None or not spec.secrets:
        return []
    return sorted({*_names(args)} & spec.secrets.keys() - for_models(spec, [*_names(before)]).secrets.keys())


def joined(tools: Mapping[str, ToolSpec], others: Mapping[str, ToolSpec]) -> dict[str, ToolSpec]:
    """The tools, and those of `others`, which take precedence. A tool of both has the secrets that either allows.

    Workers of different queues may have other secrets; each checks the steps of its own, and refuses what it does not
    allow.
    """
    found = {**tools, **others}
    for name in (each for each in tools if each in others):
        if missing := {key: use for key, use in tools[name].secrets.items() if key not in others[name].secrets}:
            found[name] = others[name].model_copy(update={"secrets": {**missing, **others[name].secrets}})
    return found


def _names(args: Mapping[str, Any]) -> Iterator[str]:
    for _, names in places_of(args):
        yield from names
