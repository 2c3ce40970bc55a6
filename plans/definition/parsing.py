"""Parses text or data into a Plan: syntax and structure, not semantics.

`parse_json` turns text into data and rejects what JSON parsers silently accept: duplicate keys, NaN and infinities,
lone surrogates, unbounded nesting. `read_plan` turns data into a Plan, or into every structural problem, each with its
step and field; `sound_part` returns what can still be validated beside them. Semantics (tools, cycles, references) are
checked by `plans.definition.checks.validation`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from plansurvive.plans.definition.foreign_names import ARGUMENTS, FIELDS, FORMATS, value_meant
from plansurvive.plans.definition.locations import MAX_FIELD, field_of, real_part, step_and_field, without
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.own_fields import INNER, MODELS, named_so, names_of, place_of
from plansurvive.plans.definition.plain_words import in_plain_words, json_problem, shown
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.expressions.references import strings
from plansurvive.plans.model import MAX_STEPS, Case, Plan, Problem, Step
from plansurvive.plans.model.step import NO_TOOL
from plansurvive.plans.text.spans import SECONDS_OF

MAX_BYTES = 8 * 1024 * 1024
TOO_LARGE = (
    f"a plan file may have {MAX_BYTES // 1024**2} MB, and this one has more; split the plan, or put its data into files"
    " that its steps read"
)
MAX_DEPTH = 64
MAX_ARGS_BYTES = 64 * 1024
_TOGETHER = 100
"""Steps whose arguments are measured together: most are short, and one by one that takes several times as long."""
MAX_FOUND = 2_000
"""Maximum number of problems of a plan's form, or of its steps, that are shown: people read no more, and making them
takes time."""
_FENCE = re.compile(r"\s*```[a-zA-Z]*\n(.*)\n```\s*", re.DOTALL)


class Unreadable(ValueError):
    """Text or data that cannot be parsed as a plan at all; carries the single problem."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(code=code, message=message)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON text strictly. Raises Unreadable with a code, the line, and how to fix it."""
    source = _decode(text)
    fenced = _FENCE.fullmatch(source)
    source = fenced[1] if fenced else source
    if not source.strip():
        raise Unreadable("PLAN_NOT_JSON", "the text is empty; a plan is a JSON object with steps")
    check_depth(source)
    try:
        data = json.loads(source, object_pairs_hook=_no_repeats, parse_constant=_not_finite, parse_int=_bounded_int)
    except json.JSONDecodeError as error:
        raise Unreadable("PLAN_NOT_JSON", f"this is not valid JSON: {json_problem(error)}") from error
    except RecursionError as error:
        raise Unreadable("PLAN_TOO_DEEP", f"nested deeper than {MAX_DEPTH}") from error
    check_values(data)
    return data


def not_utf8(error: UnicodeDecodeError) -> str:
    """What is wrong with a file that is not text as plans are written."""
    if error.object[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "the file is UTF-16; save it as UTF-8"
    return f"byte {error.start:,} is not UTF-8; is this a plan file? Save it as text in UTF-8"


def check_depth(text: str) -> None:
    """Reject text nested deeper than MAX_DEPTH before a recursive parser sees it. Raises Unreadable."""
    depth = 0
    for match in re.finditer(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', text, re.DOTALL):
        mark = match[0]
        depth += (mark in "[{") - (mark in "]}")
        if depth > MAX_DEPTH:
            raise Unreadable("PLAN_TOO_DEEP", f"nested deeper than {MAX_DEPTH}; flatten the arguments")


_ALWAYS_FIT = frozenset((int, bool, type(None)))


def check_values(data: Any) -> None:
    """Reject values a plan cannot carry: infinities, lone surrogates, nesting beyond MAX_DEPTH. Raises Unreadable."""
    stack: list[tuple[Any, int]] = [([data], 0)]
    while stack:
        item, depth = stack.pop()  # a list or an object: what is in it is looked at here, as most of it is short
        is_list = type(item) is list or isinstance(item, list)
        if item and depth > MAX_DEPTH:
            raise Unreadable("PLAN_TOO_DEEP", f"nested deeper than {MAX_DEPTH}; flatten the arguments")
        for each in item if is_list else chain(item, item.values()):
            kind = type(each)  # nearly every value has one of these types itself
            if kind is str or isinstance(each, str):
                if not each.isascii() and re.search("[\ud800-\udfff]", each):
                    text = "a text contains half a character (a lone surrogate); write the whole character"
                    raise Unreadable("PLAN_BAD_TEXT", text)
            elif kind in _ALWAYS_FIT:
                continue
            elif isinstance(each, (list, dict, Mapping)):  # isinstance with dict is far cheaper than with Mapping
                stack.append((each, depth + 1))
            elif isinstance(each, float) and each - each != 0:
                text = f"{each} is not a JSON number; write a finite one, or a string"
                raise Unreadable("PLAN_NOT_FINITE", text)


def read_plan(data: Any) -> Plan | list[Problem]:
    """Validate the structure of `data`: a Plan, or a list of every structural problem."""
    problems = _shape(data)
    if problems:
        return problems
    try:
        check_values(data)
        plan = Plan.model_validate(data)
    except Unreadable as error:
        return [error.problem]
    except ValidationError as error:
        return _problems(data, error)
    return _sizes(plan) or plan


def _problems(data: Any, error: ValidationError) -> list[Problem]:
    hints, details = Hints(), error.errors(include_url=False)
    details = [each for each in details if each["loc"][-2:] != ("tolerate", "constrained-str")]  # said of the number
    found = _once([(detail, *_problem(data, detail, hints)) for detail in details[:MAX_FOUND]])
    if len(details) > MAX_FOUND:
        text = f"{len(details) - MAX_FOUND} more problems are not shown; fix these first"
        found.append(Problem(code="MORE_PROBLEMS", message=text))
    return found


def _once(found: list[tuple[ErrorDetails, Problem, str]]) -> list[Problem]:
    """The problems, without those of fields that are missing where another problem says that its field means them."""
    meant = {(*detail["loc"][:-1], field) for detail, _, field in found if field}
    return [problem for detail, problem, _ in found if detail["type"] != "missing" or detail["loc"] not in meant]


def sound_part(data: Any) -> Plan | None:
    """The plan without its malformed fields, so that the rest can be validated too; None if nothing valid remains.

    Malformed `args` and `inputs` are never dropped, nor are whole loops: every step that uses them, or their items,
    would then be reported as well.
    """
    if _shape(data):
        return None
    try:
        check_values(data)
        return Plan.model_validate(data)
    except Unreadable:
        return None
    except ValidationError as error:
        found = [detail["loc"] for detail in error.errors(include_url=False)]
    parts = {tuple(real_part(data, place, missing=True)) for place in found}
    fields = {field_of(data, part) for part in parts}
    if () in fields or any({"args", "inputs"} & set(place) for place in fields):
        return None
    for places in (parts, fields):  # parts first: of a loop, what its steps may use stays
        if any(place[-1] in ("forEach", "repeat") for place in places):
            return None
        with suppress(ValidationError):
            return Plan.model_validate(without(data, places))
    return None


def _decode(text: str | bytes) -> str:
    if len(text) > MAX_BYTES:
        raise Unreadable("PLAN_TOO_LARGE", TOO_LARGE)
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("PLAN_NOT_JSON", not_utf8(error)) from error


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Unreadable("PLAN_DUPLICATE_KEY", f"'{key}' appears twice in one object; remove one of them")
        found[key] = value
    return found


def _not_finite(text: str) -> Any:
    raise Unreadable("PLAN_NOT_FINITE", f"{text} is not a JSON number; write a finite one, or a string")


def _bounded_int(text: str) -> int:
    if len(text) > 400:
        raise Unreadable("PLAN_NOT_JSON", f"a number of {len(text)} digits; write it as a string")
    return int(text)


def _shape(data: Any) -> list[Problem]:
    if not isinstance(data, Mapping):
        kinds = {"list": "a list", "str": "a text", "bool": "true or false", "NoneType": "empty"}
        kind = kinds.get(type(data).__name__, "a number")
        text = f"a plan is an object with steps, this is {kind}; `plan init` makes a first one"
        return [Problem(code="PLAN_SCHEMA", message=text)]
    steps = data.get("steps")
    if "steps" not in data and (other := next((name for name in FORMATS if name in data), "")):
        text = f"there is no field '{other}'; {FORMATS[other]}"
        return [Problem(code="PLAN_SCHEMA", field=other, message=text)]
    if isinstance(steps, list) and not steps:
        return [Problem(code="PLAN_SCHEMA", field="steps", message="the plan is empty; add at least one step")]
    if isinstance(steps, list) and len(steps) > MAX_STEPS:
        text = f"a plan may have {MAX_STEPS} steps, this one has {len(steps)}; split it"
        return [Problem(code="PLAN_TOO_LARGE", field="steps", message=text)]
    return []


def _sizes(plan: Plan) -> list[Problem]:
    problems, encode, steps = list[Problem](), json.JSONEncoder(ensure_ascii=False).encode, list(walk(plan))
    for start in range(0, len(steps), _TOGETHER):
        some = steps[start : start + _TOGETHER]
        written = encode([(step.args, step.undo and step.undo.args) for _, step in some])
        if len(written.encode()) <= MAX_ARGS_BYTES and "\\u0000" not in written:
            continue  # so each of them fits
        for path, step in some:
            args, undo = step.args, step.undo.args if step.undo is not None else {}
            written = encode([args, undo] if undo else args)
            size = len(written.encode())
            if size > MAX_ARGS_BYTES:
                text = f"the arguments have {size} bytes, {MAX_ARGS_BYTES} are allowed; put the data in a file"
                problems.append(Problem(code="PLAN_TOO_LARGE", step_id=path, field="args", message=text))
            if "\\u0000" in written and any("\0" in text for at, text in strings([args, undo]) if at[-1] == "path"):
                text = "a path cannot contain a NUL character; remove it"
                problems.append(Problem(code="PLAN_BAD_TEXT", step_id=path, field="args.path", message=text))
    return problems


SECONDS = ("timeout", "estimatedDuration", "delay", "seconds")
"""Fields that are times: their numbers are seconds."""


def _problem(data: Any, detail: ErrorDetails, hints: Hints) -> tuple[Problem, str]:
    """A problem, and the field that is meant by one that there is not."""
    is_new = detail["type"] in ("missing", "extra_forbidden")
    step_id, location = step_and_field(data, real_part(data, detail["loc"], is_new))
    if detail["type"] == NO_TOOL:
        location = ["tool"]
    elif step_id is not None and not location:
        location = ["step"]
    field = ".".join(map(str, location))[:MAX_FIELD] or None
    code = _code(location, detail) if location else "PLAN_SCHEMA"
    is_unknown = detail["type"] == "extra_forbidden"
    message, meant = _unknown_field(detail, step_id is not None, hints) if is_unknown else (_sentence(detail), "")
    return Problem(code=code, step_id=step_id, field=field, message=message), meant


def _code(location: list[str | int], detail: ErrorDetails) -> str:
    field, given = location[0], detail["input"]
    if isinstance(given, str) and "\0" in given:
        return "PLAN_BAD_TEXT"
    if field in ("dependsOn", "depends_on") and detail["type"] == "string_pattern_mismatch":
        return "UNKNOWN_DEPENDENCY"
    return "UNKNOWN_TOOL" if field == "tool" and detail["type"] not in (NO_TOOL, "extra_forbidden") else "PLAN_SCHEMA"


def _sentence(detail: ErrorDetails) -> str:
    kind, name = detail["type"], str(detail["loc"][-1]) if detail["loc"] else ""
    if kind == "missing":
        return f"'{name}' is missing; add it"
    if kind == NO_TOOL:
        return detail["msg"]
    if detail["loc"][-1:] == ("tool",):
        return f"Unknown tool: {shown(detail['input'])}; name a tool, `plan tools` lists them"
    if kind == "string_pattern_mismatch" and detail["loc"][-2:-1] in (("dependsOn",), ("depends_on",)):
        root = re.match(r"[$\s{]*([\w-]+)", str(detail["input"]))
        alone = f" by its id alone, as in `dependsOn: [{root[1][:MAX_FIELD]}]`" if root else ""
        return f"Unknown dependency: {shown(detail['input'])}; name a step of the plan{alone}"
    if detail["loc"][-2:-1] == ("inputs",) and kind == "model_type":
        return f"should be an object, such as `{name}: {{type: string, default: ...}}`; it is {shown(detail['input'])}"
    if detail["loc"][-2:-1] == ("tolerate",):
        return f'should be a number of items, or a percentage, such as `3` or `"10%"`; it is {shown(detail["input"])}'
    if kind == "string_pattern_mismatch" and "labels" in detail["loc"][:1]:
        what = "the name of a label has 1 to 63 letters, digits, '_', '.' or '-'"
        return f"{what if name == '[key]' else 'a label is one line of text'}; this is {shown(detail['input'])}"
    if kind == "string_pattern_mismatch":
        curly = isinstance(detail["input"], str) and _CURLY & set(detail["input"])
        why = "quotes are straight in YAML and JSON" if curly else "write 1 to 128 letters, digits, '_' or '-'"
        return f"{shown(detail['input'])} is not a valid id: {why}"
    text = in_plain_words(detail["msg"])
    if text == "should be a number" and name in SECONDS:
        return f"{text} of seconds; it is {shown(detail['input'])}{_in_seconds(detail['input'])}"
    shape = _SHAPES.get(name) or f"{{{next(iter(INNER[name]))}: ...}}" if name in (*_SHAPES, *INNER) else ""
    text += f", such as `{name}: {shape}`" if text in _SHAPELESS and shape else ""
    more = ""
    if kind == "literal_error":
        field = next((part for part in reversed(detail["loc"]) if isinstance(part, str)), "")
        return f"{text}; it is {shown(detail['input'])}{value_meant(to_camel(field), detail['input'], _quoted(text))}"
    if text == "should be a string" and isinstance(detail["input"], int | float):
        more = "; put it in quotes"
    elif name == "approval" and text.startswith(_SHAPELESS[0]):
        more = "; `requiresApproval: true` makes a step ask"
    return f"{text}; it is {shown(detail['input'])}{more}"


_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_CURLY = frozenset("\u201c\u201d\u201e\u2018\u2019")


def _quoted(text: str) -> list[str]:
    """What a text names in quotes."""
    return re.findall(r"'([^']+)'", text)


def _in_seconds(value: Any) -> str:
    """What to write instead of a time with its unit; empty if it is none."""
    parts = _SPAN.findall(value) if isinstance(value, str) else []
    if not parts or "".join(value.split()) != "".join(map("".join, parts)):
        return ""
    return f": write {sum(float(number) * SECONDS_OF[unit] for number, unit in parts):.10g}"


_SHAPELESS = ("should be an object (`name: value`)", "should be a list")
_SHAPES = {
    "steps": "[{id: look, tool: list_directory, args: {path: .}}]", "args": "{path: a.txt}",
    "retry": "{attempts: 3}", "approval": "{timeout: 3600}", "repeat": "{until: EXPRESSION, limit: 10}",
    "undo": "{tool: delete_file, args: {path: a.txt}}", "catch": "[{steps: [...]}]",
    "switch": "[{when: EXPRESSION, steps: [...]}]",
    "inputs": "{name: {type: string}}", "outputs": "{name: EXPRESSION}", "labels": "{team: billing}",
    "finally": "[{id: report, tool: write_file, args: {path: a.txt, content: done}}]",
    "owns": "[report.md]", "fairness": "{key: acme}",
    "forEach": "{items: [a, b]}", "dependsOn": "[STEP]", "defaults": "{retry: {attempts: 3}}",
}  # fmt: skip
"""By field that is an object or a list, how it may look."""


def _unknown_field(detail: ErrorDetails, in_step: bool, hints: Hints) -> tuple[str, str]:
    """What is said of a field that there is not, and the one that is meant, if it is known."""
    name = str(detail["loc"][-1])
    parents = [part for part in detail["loc"][:-1] if isinstance(part, str) and part in MODELS]
    model = MODELS[parents[-1] if parents else ("steps" if in_step else "")]
    known = names_of(model)
    own = named_so(name)
    if own not in known and (text := _explained(name, detail, model, known, parents)):
        return text, ""
    near = own if own in known else hints.near(name, known, FIELDS)
    lacking = [info.alias or key for key, info in model.model_fields.items() if info.is_required()]
    if len(lacking) == 1 and detail["input"] is None and not near:  # `{ann}` of YAML, for `{to: ann}`
        return f"there is no field '{name}'; did you mean `{lacking[0]}: {name}`?", lacking[0]
    hint = f"did you mean '{near}'?" if near else f"known: {', '.join(known)}"
    return f"there is no field '{name}'; {hint}", near


def _explained(name: str, detail: ErrorDetails, model: type[BaseModel], known: list[str], parents: list[str]) -> str:
    """What to do about a field that there is not, where that is more than another name."""
    if name in ("status", "result"):
        return f"'{name}' is set by the run, not by the plan; remove it"
    own = named_so(name)
    place = place_of(own, model, parents)
    if model is Plan and place and own == name:
        return place
    if model in (Plan, Step, Case) and (instead := FIELDS.answer(name)):
        return f"there is no field '{name}'; {instead}"
    if place and not FIELDS.meant(name, known):
        return place if own == name else f"there is no field '{name}'; {place}"
    if model is Step and name in ARGUMENTS:
        return f"there is no field '{name}'; the arguments of a tool are in `args`: `args: {{{name}: ...}}`"
    if model is Step and isinstance(detail["input"], dict) and {"tool", "steps"} & set(detail["input"]):
        return f"there is no field '{name}'; a step is an object with an id: `- id: {name}`, with its fields below"
    if parents[-1:] == ["inputs"] and name in ("required", "optional"):
        return f"there is no field '{name}'; an input with a `default` may be left out, and one without must be given"
    for owner in known if model in (Plan, Step) and not FIELDS.meant(name, known) else ():
        meant = FIELDS.meant(name, INNER.get(owner, ()))
        if meant and meant != "delay":  # of which there are several
            return f"there is no field '{name}'; it is called `{meant}` here: `{owner}: {{{meant}: ...}}`"
    return ""
