"""JSON Schemas for a model's answers, in the strict dialect of structured outputs.

Strict means: every field is required, additional fields are not allowed, optional fields are nullable, and only widely
supported keywords are used. Tool arguments become one variant per tool; a part that cannot be expressed strictly (such
as a free-form object) is requested as JSON text. `loosened` converts both back to what the tool expects. Descriptions
contain the field instructions: when to fill a field, not only what it means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from plansurvive.plans.llm.chosen_tools import Offered
from plansurvive.plans.model import Step, ToolSpec
from plansurvive.plans.model.step_fields import asked, offered

Schema = dict[str, Any]
NULLABLE_TEXT: Schema = {"type": ["string", "null"]}
Tools = Offered | Iterable[ToolSpec]


def plan_schema(tools: Tools) -> Schema:
    """The schema of a plan."""
    return object_schema(
        {
            "title": NULLABLE_TEXT | {"description": "Title of the plan, in one line"},
            "steps": _steps(tools),
            "estimatedDuration": {
                "type": ["number", "null"],
                "description": "Estimated duration of the plan, in seconds",
            },
        }
    )


def recovery_schema(tools: Tools, failed: ToolSpec | None) -> Schema:
    """The schema of a recovery. `failed`: the failed step's tool; None if new arguments are not allowed."""
    actions = {"type": "string", "enum": ["retry", "skip", "insert", "abort"], "description": "What to do"}
    args = {"anyOf": [_args(failed, True), {"type": "null"}]} if failed else {"type": "null"}
    steps = {
        "anyOf": [_steps(tools), {"type": "null"}],
        "description": "With insert: the steps to run before the failed step is retried",
    }
    return object_schema(
        {
            "action": actions,
            "args": args | {"description": "With retry: the complete new arguments"},
            "steps": steps,
            "reason": {"type": "string", "description": "The reason, in one sentence"},
        }
    )


def object_schema(properties: Mapping[str, Schema]) -> Schema:
    """An object that has exactly these fields."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def calls_schema(tools: Tools) -> Schema:
    """A list of calls of these tools."""
    chosen = tools if isinstance(tools, Offered) else Offered.of(tools, "")
    variants = [object_schema({"tool": _one_of([spec]), "args": _args(spec, False)}) for spec in chosen.whole]
    if chosen.named:
        variants.append(object_schema({"tool": _one_of(chosen.named), "args": _json_text(_ARGS)}))
    return {"type": "array", "items": {"anyOf": variants} if variants else object_schema({})}


def instruction(fields: Mapping[str, tuple[str, str]], name: str) -> str:
    """Description and instruction of a field, for the model."""
    return ". ".join(fields[name])


def loosened(value: Any, schema: Mapping[str, Any]) -> Any:
    """Convert strict arguments to the tool's own schema: drop nulls of optional fields, decode JSON texts."""
    return _loosened(value, _Patternless(schema))


def _ignored(*_: Any) -> None:
    """A keyword that is not applied."""


_Patternless: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, dict.fromkeys(("pattern", "patternProperties", "uniqueItems"), _ignored)
)
"""What may take long with a hostile schema is left to `argument_problems`, which has a limit."""


_ASKED = tuple(asked(Step).items())
_OFFERED = offered(Step)
_STEP: Schema = Step.model_json_schema()["$defs"]["Step"]["properties"]
_CALL = ("tool", "args")
_ARGS = "The arguments, a JSON object"
_TEXTS, _DATA = ("description", "examples", "default"), ("const", "enum", "required")
MAX_WORD = 64
"""Characters of a value that a server's schema lists; others are in the prompt only, as data."""
_PLAIN = frozenset({"string", "integer", "number", "boolean", "null"})


def _steps(tools: Tools) -> Schema:
    chosen = tools if isinstance(tools, Offered) else Offered.of(tools, "")
    variants = [_step(_one_of([spec]), _args(spec, True)) for spec in chosen.whole]
    variants += [_step(_one_of(chosen.named), _json_text(_ARGS))] if chosen.named else []
    items = {"anyOf": [*variants, _block()]} if variants else object_schema({})
    return {"type": "array", "items": items, "description": "The steps"}


def _step(tool: Schema, args: Schema) -> Schema:
    own = {"tool": tool, "args": args}
    fields = {name: own.get(name) or _field(name) | {"description": field.about} for name, field in _ASKED}
    return object_schema(fields | _texts(of_blocks=False))


def _block() -> Schema:
    """A step without a tool. What it contains is text: not all strict endpoints take a schema that contains itself."""
    fields = {name: _field(name) | {"description": field.about} for name, field in _ASKED if name not in _CALL}
    return object_schema(fields | _texts(of_blocks=True) | _texts(of_blocks=False))


def _one_of(tools: Sequence[ToolSpec]) -> Schema:
    return {"type": "string", "enum": [spec.name for spec in tools]}


def _texts(*, of_blocks: bool) -> dict[str, Schema]:
    chosen = {name: field for name, field in _OFFERED.items() if field.of_blocks == of_blocks}
    return {name: NULLABLE_TEXT | {"description": field.about} for name, field in chosen.items()}


def _field(name: str) -> Schema:
    """The schema of a step's field, with strict keywords only."""
    schema = _STEP[name]
    kinds = [option["type"] for option in schema.get("anyOf", [schema])]
    items = {"items": {"type": schema["items"]["type"]}} if "items" in schema else {}
    return {"type": kinds[0] if len(kinds) == 1 else kinds} | items


def _args(spec: ToolSpec, references: bool) -> Schema:
    """The strict schema of a tool's arguments. `references`: any value may also be a string (a reference)."""
    strict = _strict(_unsaid(spec.args_schema) if spec.server else spec.args_schema, references)
    return strict if strict.get("type") == "object" else _json_text(_ARGS)


def _unsaid(schema: Any) -> Any:
    """A server's schema without its texts: a prompt shows them where they are marked as data, and nowhere else."""
    if isinstance(schema, list):
        return [_unsaid(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: Schema = {}
    for name, each in schema.items():
        if name == "properties" and isinstance(each, Mapping):
            made[name] = {key: _unsaid(part) for key, part in each.items()}
        elif name not in _TEXTS and (name != "enum" or _are_words(each)):
            made[name] = each if name in _DATA else _unsaid(each)
    return made


def _are_words(values: Any) -> bool:
    texts = [each for each in values if isinstance(each, str)] if isinstance(values, list) else []
    return all(len(each) <= MAX_WORD and len(each.split()) <= 1 for each in texts)


def _strict(schema: Any, references: bool) -> Schema:
    if not isinstance(schema, Mapping):
        return _json_text("")
    about = str(schema.get("description", ""))
    options = schema.get("anyOf")
    if isinstance(options, list):
        variants = [_strict(option, references) for option in options]
        unique = list({json.dumps(variant, sort_keys=True): variant for variant in variants}.values())
        return {"anyOf": unique} | ({"description": about} if about else {})
    kind = schema.get("type")
    if kind == "object" and "properties" in schema and schema.get("additionalProperties", False) is False:
        return _strict_object(schema, references)
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return _or_reference({"type": "array", "items": _strict(schema["items"], references)}, about, references)
    if isinstance(kind, str) and kind in _PLAIN:
        plain: Schema = {"type": kind} | ({"enum": schema["enum"]} if "enum" in schema else {})
        return _or_reference(plain, about, references)
    return _json_text(about)


def _strict_object(schema: Mapping[str, Any], references: bool) -> Schema:
    required = set(schema.get("required", []))
    fields = {name: _strict(field, references) for name, field in schema["properties"].items()}
    return object_schema({name: field if name in required else _nullable(field) for name, field in fields.items()})


def _nullable(schema: Schema) -> Schema:
    options = schema.get("anyOf", [schema])
    if {"type": "null"} in options:
        return schema
    about = {"description": schema["description"]} if "description" in schema else {}
    bare = [{name: part for name, part in option.items() if name != "description"} for option in options]
    return {"anyOf": [*bare, {"type": "null"}]} | about


def _or_reference(schema: Schema, about: str, references: bool) -> Schema:
    described = {"description": about} if about else {}
    if references and (schema["type"] not in ("string", "null") or "enum" in schema):
        return {"anyOf": [schema, {"type": "string"}]} | described
    return schema | described


def _json_text(about: str) -> Schema:
    return {"type": "string", "description": f"{about} (JSON, written as text)".strip()}


def _loosened(value: Any, validator: Any) -> Any:
    schema = validator.schema
    if isinstance(value, str) and not validator.is_valid(value):
        return _decoded(value, validator)
    if isinstance(value, list) and isinstance(schema, Mapping) and isinstance(schema.get("items"), Mapping):
        inner = validator.evolve(schema=schema["items"])
        return [_loosened(item, inner) for item in value]
    if isinstance(value, dict) and isinstance(schema, Mapping) and "properties" in schema:
        required, fields = schema.get("required", []), schema["properties"]
        present = {name: item for name, item in value.items() if item is not None or name in required}
        return {
            name: _loosened(item, validator.evolve(schema=fields[name])) if name in fields else item
            for name, item in present.items()
        }
    return value


def _decoded(text: str, validator: Any) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) and validator.is_valid(value) else text
