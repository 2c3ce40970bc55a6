"""A step as JSON for the user's editor, and the edits of its fields that turn it into what came back. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from plansurvive.plans.definition.plain_words import json_problem
from plansurvive.plans.editing.apply_edits import STEP_FIELDS
from plansurvive.plans.editing.edits import Edit, SetField
from plansurvive.plans.errors import PlanError


def as_text(step: Mapping[str, Any]) -> str:
    """The step as JSON for the editor; control characters are written as escapes."""
    known = {name: value for name, value in step.items() if name == "id" or name in STEP_FIELDS}
    return json.dumps(known, indent=2, ensure_ascii=not json.dumps(known, ensure_ascii=False).isprintable()) + "\n"


def edits_of(step: Mapping[str, Any], text: str) -> list[Edit]:
    """The edits that turn the step into the text. Raises PlanError PLAN_SCHEMA or UNKNOWN_FIELD."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise PlanError(f"your text is not valid JSON: {json_problem(error)}", "PLAN_SCHEMA") from None
    if not isinstance(found, dict) or found.get("id") != step["id"]:
        raise PlanError(f"write one JSON object and do not change its id '{step['id']}'", "PLAN_SCHEMA")
    unknown = sorted(found.keys() - STEP_FIELDS - {"id"})
    if unknown:
        text = f"a step has no field '{unknown[0]}'; these can be set: {', '.join(sorted(STEP_FIELDS))}"
        raise PlanError(text, "UNKNOWN_FIELD")
    changed = [name for name in sorted(STEP_FIELDS) if found.get(name) != step.get(name)]
    return [SetField(op="set", step_id=step["id"], path=name, value=found.get(name)) for name in changed]
