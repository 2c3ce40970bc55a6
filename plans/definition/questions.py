"""What a question is: the arguments of a step of the tool `ask`, and which values answer it.

A question has a JSON Schema, or choices, or neither: then its answer is a text. Its author, who may be a model, and
whoever answers are not trusted: sizes are limited, and a schema is applied with a limit on the work, by count and not
by time, because a replay must reach the same verdict. No check of a value raises.

A question is ready, not running: running steps would fill the slots and make `plan pause` wait for people. `--yes`
answers none, since only a person knows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from plansurvive.plans.definition.arguments import in_words
from plansurvive.plans.definition.bounded_schema import TooMuch, Unbounded, errors
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.definition.parsing import Unreadable, parse_json
from plansurvive.plans.definition.plain_words import json_problem
from plansurvive.plans.expressions.references import find

ASK = "ask"
"""Name of the tool."""
MAX_CHARACTERS = 32_768
"""Maximum length of a question with all that belongs to it, in characters of JSON: it is shown whole."""
MAX_APPLIED = 20_000
"""Maximum number of keywords, matches and errors of one answer: a tenth of a second at worst."""
MAX_MATCHED = 5_000_000
"""Maximum characters times RE2 instructions of one answer: a tenth of a second at worst."""
_SHOWN = 200
"""Characters of a value in a refusal."""

Args = Mapping[str, Any]
IsKnown = Callable[[Any], bool]
"""Whether a part of the arguments is written out, rather than to be filled in."""


def written_problems(args: Args) -> list[tuple[str, str]]:
    """What is wrong with a question as its author wrote it, as (field, sentence); references are not looked into."""
    return _problems(args, lambda part: not find(part))


def problem(args: Args) -> str:
    """What is wrong with a question whose references are filled in; empty if nothing is."""
    found = _problems(args, lambda _: True)
    return f"{found[0][0]}: {found[0][1]}" if found else ""


def _problems(args: Args, is_known: IsKnown) -> list[tuple[str, str]]:
    length = len(json.dumps(args, ensure_ascii=False, default=str))
    if length > MAX_CHARACTERS:
        text = f"it has {length} characters of JSON with all its arguments; {MAX_CHARACTERS} are allowed"
        return [("args.question", f"{text}: put long texts into a file, and name that")]
    timeout = args.get("timeout")
    if isinstance(timeout, float) and not math.isfinite(timeout):
        return [("args.timeout", "not a finite number")]
    found = [*_schema_problems(args, is_known), *_choice_problems(args, is_known)]
    if args.get("onTimeout") == "default" and not has_default(args):
        found.append(("args.onTimeout", "there is no default to take; add `default`, or write fail or skip"))
    if not found and has_default(args) and all(is_known(args.get(name)) for name in ("default", "schema", "choices")):
        why = misfit(args, args["default"])
        found += [("args.default", f"it does not answer the question: {why}")] if why else []
    return found


def _schema_problems(args: Args, is_known: IsKnown) -> list[tuple[str, str]]:
    schema = args.get("schema")
    if schema is None or not is_known(schema):
        return []
    if args.get("choices") is not None:
        return [("args.choices", "a question has a schema or choices, not both; remove one of them")]
    why = schema_problem(schema) if isinstance(schema, Mapping) else "not a JSON Schema: it must be an object"
    return [("args.schema", why)] if why else []


def _choice_problems(args: Args, is_known: IsKnown) -> list[tuple[str, str]]:
    choices = args.get("choices")
    if choices is None or not is_known(choices) or not isinstance(choices, list):
        return []
    seen: set[str] = set()
    for choice in choices:
        text = _same(choice)
        if text in seen:
            return [("args.choices", f"{_short(choice)} occurs twice; each choice must differ from the others")]
        seen.add(text)
    return []


def schema_of(args: Args) -> dict[str, Any]:
    """The JSON Schema of the answers."""
    if args.get("choices") is not None:
        return {"enum": args["choices"]}
    schema = args.get("schema")
    return dict(schema) if isinstance(schema, Mapping) else {"type": "string", "minLength": 1}


def misfit(args: Args, value: Any) -> str:
    """Why a value does not answer the question; empty if it does. The question itself has no problem."""
    choices = args.get("choices")
    if choices is not None:
        if _same(value) in {_same(choice) for choice in choices}:
            return ""
        return f"{_short(value)} is not one of the choices: {', '.join(map(_short, choices[:20]))}"[:1_000]
    if args.get("schema") is None:
        is_text = isinstance(value, str) and value.strip()
        return "" if is_text else f"{_short(value)} is not a text; write what the question asks for"
    left = iter(range(MAX_APPLIED))
    try:
        found = next(errors(args["schema"], value, lambda: next(left, None) is not None, MAX_MATCHED), None)
    except TooMuch:
        return "checking it against the schema takes too long; shorten it"
    except (Unbounded, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        return f"the schema cannot be applied: {' '.join(str(error).split())[:_SHOWN]}"
    if found is None:
        return ""
    place = ".".join(map(str, found.absolute_path))[:_SHOWN]
    said = " ".join(found.message.split())[:300]
    if found.validator == "type":
        said = f"should be {in_words(found.validator_value)}; it is {_short(found.instance)}{_not_json(found.instance)}"
    return f"{f'{place}: ' if place else ''}{said}"


def _not_json(value: Any) -> str:
    """Why a text that was meant as an object or a list is none; empty if it was not."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return ""
    try:
        json.loads(value)
    except ValueError as error:
        return f", which is not valid JSON: {json_problem(error)}"
    return ""


def value_of(args: Args, text: str) -> Any:
    """The value that a typed text stands for: read as JSON if that answers the question, else the text itself."""
    try:
        value = parse_json(text)
    except Unreadable:
        return text
    # Of two that do not fit, the one that was probably meant: the plan says what is wrong with it.
    return value if not misfit(args, value) or misfit(args, text) else text


def about(args: Args) -> str:
    """In a few words, what answers the question."""
    if args.get("choices") is not None:
        return f"one of {', '.join(map(as_typed, args['choices'][:20]))}"[:_SHOWN]
    return "a text" if args.get("schema") is None else "JSON that fits the schema"


def as_typed(value: Any) -> str:
    """A value as somebody would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def has_default(args: Args) -> bool:
    """Whether an empty answer means something; a null is no default."""
    return args.get("default") is not None


def on_timeout(args: Args) -> str:
    """What happens when nobody answers in time: default, fail or skip."""
    return str(args.get("onTimeout") or ("default" if has_default(args) else "fail"))


def _same(value: Any) -> str:
    """Equal for values that are the same answer: 1 and 1.0 are, 1 and true are not."""
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if whole else value, sort_keys=True, ensure_ascii=True, default=str)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
