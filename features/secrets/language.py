"""The word `secret` in the language of plans, and which secrets a model may name.

Those that secrets.toml lets models name, and those that the plan named before. A model never sees a secret. Naming one
is using it, though: so an LLM that writes, revises or repairs a plan is held to the same rule as an agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plansurvive.features.secrets.naming import SECRET, places_of
from plansurvive.features.secrets.permissions import MISPLACED, NOT_HERE, UNKNOWN, allowed_to, problems, with_allowed
from plansurvive.plans.definition.language import Language, Word
from plansurvive.plans.model import ToolSpec


def for_models(spec: ToolSpec, before: Sequence[Mapping[str, Any]] = ()) -> ToolSpec:
    """The spec with the secrets that a model may name. `before`: arguments in which it found some."""
    known = allowed_to(spec)
    named = {name for args in before for _, names in places_of(args) for name in names}
    found = {name: use for name, use in known.items() if use.models or name in named}
    return spec if len(found) == len(known) else with_allowed(spec, found)


LANGUAGE = Language(words=[Word(SECRET, (MISPLACED, NOT_HERE), UNKNOWN, problems, for_models)])
