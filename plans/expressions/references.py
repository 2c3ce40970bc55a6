"""Finds references in arguments and fills them in.

- A whole string `$step_1` is that step's value; `$step_1.rows[0].name` reaches inside with JMESPath.
- `{{step_1.name}}` inserts a value into a longer text: texts as they are, everything else as JSON.
- `inputs` is a root like a step: `$inputs.name`, `{{inputs.name}}`.
- A string that begins with `$$` is that string with one dollar sign less; `{{{{x}}}}` is the literal `{{x}}`.
- Any other dollar sign is left as it is; so are `$1.50`, and `$5` unless a step has the id `5` (REQUIREMENTS B2).
- An argument that is code accepts insertions only: a whole reference would make the value itself the code.

Filled text is never scanned again, so a value cannot inject a reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from plansurvive.plans.errors import BadExpression, BadReference
from plansurvive.plans.expressions.conditions import search
from plansurvive.plans.expressions.evaluation import MAX_CHARACTERS_IN_ACTIVITY, TOO_COSTLY, UNITS_IN_ACTIVITY, Budget
from plansurvive.plans.expressions.jmespath_quoting import join_jmespath
from plansurvive.plans.expressions.quoting import join_python, join_shell

INPUTS = "inputs"
"""The root name of a plan's inputs."""

MAX_IN_CODE = 2_000
"""References in one argument that is code: each has to be looked at where it stands, which takes microseconds."""

Location = list[str | int]
"""Location of a string in the arguments: keys and indexes, outermost first."""
Quoting = Mapping[str, Literal["shell", "python", "jmespath"]]

_ID = r"[A-Za-z0-9_][A-Za-z0-9_-]*"
_WHOLE = re.compile(rf"\$({_ID})((?:\.|\[).*)?", re.DOTALL)
# Neither `{{` nor `}}`, in linear time. No possessive quantifier (`*+`) around a lookahead: Python before 3.11.5
# matches it incorrectly.
_INSIDE = r"(?:(?!\{\{|\}\}).)*"
_INSERT = re.compile(rf"\{{{{4}}({_INSIDE})\}}{{4}}|\{{{{2}}\s*({_ID})\s*((?:\.|\[|\|){_INSIDE})?\}}{{2}}", re.DOTALL)


_WHOLE_CODE = (
    "'{}' would run the value itself as code; write it to a file in an earlier step and run that file, or insert it as"
    " data, as in: echo {{{{step}}}}"
)


class Reference(NamedTuple):
    """One reference to a step's value or an input: its location, the root it names, and the path into the value."""

    place: tuple[str | int, ...]
    root: str
    path: str
    text: str
    whole: bool

    def alike(self, inside: str) -> str:
        """Another one, of what is between the braces or behind the dollar sign, written as this one is."""
        return f"${inside}" if self.whole else f"{{{{{inside}}}}}"


PLAIN = frozenset((int, float, bool, type(None)))
"""Types of JSON values without texts in them."""
_PER_CHARACTER, _PER_INSERTION = 2, 40
"""Units of work that filling in a text takes, quoting included."""


@dataclass(frozen=True)
class Filled:
    """Arguments with their references filled in, except at the `deferred` locations: those values are not loaded."""

    args: dict[str, Any]
    deferred: list[Location]
    withheld: Sequence[Location] = ()
    """Further locations that are left as they are written: they name values that only the worker has."""


def find(args: Any) -> list[Reference]:
    """Every reference in `args`, in reading order; `$` alone counts as one with an empty root."""
    return [reference for place, text in marked(args) for reference in in_text(text, place)]


def marked(args: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """The strings in which references may be, each with its location, in reading order."""
    found: Iterable[tuple[tuple[str | int, ...], str]] = strings(args)
    if type(args) is dict:
        found = []
        for name, value in args.items():
            if type(value) is str:
                found.append(((name,), value))
            elif type(value) not in PLAIN:  # there may be some inside it
                found += strings(value, (name,))
    return [(place, text) for place, text in found if "$" in text or "{{" in text]


def hold_no_text(args: dict[str, Any]) -> bool:
    """Whether the arguments are numbers and the like alone: nothing can be filled in."""
    for value in args.values():  # noqa: SIM110 - a generator would cost more than filling in does
        if type(value) not in PLAIN:
            return False
    return True


def in_text(text: str, place: tuple[str | int, ...] = ()) -> list[Reference]:
    """The references in one string."""
    if "$" not in text and "{{" not in text:
        return []  # the common case; the patterns below cost ten times as much
    if text == "$":
        return [Reference(place, "", "", text, True)]
    if text.startswith("$$"):
        return []
    whole = _WHOLE.fullmatch(text)
    if whole:
        if whole[1].isdigit() and re.match(r"\.\d", whole[2] or ""):
            return []  # `$1.50` is a price; no path begins with a digit
        return [Reference(place, whole[1], path_of(whole[2]), text, True)]
    return [
        Reference(place, match[2], path_of(match[3]), match[0], False)
        for match in _INSERT.finditer(text)
        if match[2] is not None
    ]


def is_literal(reference: Reference, known: Container[str]) -> bool:
    """Whether it only looks like a reference: `$5` where no step has the id `5`."""
    return reference.whole and reference.root.isdigit() and reference.root not in known


def literal(text: str) -> str:
    """Escape `text` so that filling yields exactly this text."""
    if text.startswith("$"):
        return f"${text}"
    return _INSERT.sub(lambda match: match[0] if match[2] is None else "{{" + match[0] + "}}", text)


def path_of(rest: str | None) -> str:
    """The JMESPath expression in what follows a root: `.rows[0]` -> `rows[0]`, `| [0]` -> `@ | [0]`, nothing -> ``."""
    if not rest:
        return ""
    rest = rest.strip()
    if rest.startswith("."):
        return rest[1:] or rest
    return f"@ {rest}" if rest.startswith("|") else rest


def strings(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every string in a JSON value with its location. Iterative, so that depth cannot overflow the stack."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [(place, value)]
    while stack:
        where, item = stack.pop()
        if type(item) in PLAIN:
            continue
        if isinstance(item, str):
            yield where, item
        elif isinstance(item, (dict, Mapping)):  # with dict first: asking Mapping costs ten times that
            stack += [((*where, key), item[key]) for key in reversed(list(item)) if type(item[key]) not in PLAIN]
        elif isinstance(item, list):
            stack += [((*where, i), item[i]) for i in reversed(range(len(item))) if type(item[i]) not in PLAIN]


def fill(
    args: dict[str, Any],
    values: Mapping[str, Any],
    quoting: Quoting,
    absent: Collection[str] = (),
    budget: Budget | None = None,
) -> Filled:
    """Replace every reference by its value.

    Strings that mention a root in `absent` (large values in external storage) are left as they are and their locations
    returned. Raises BadReference when a value, or what the path selects in it, does not exist or does not fit.
    """
    deferred: list[Location] = []
    budget = budget or Budget()

    def one(text: str, place: tuple[str | int, ...]) -> Any:
        if absent and any(reference.root in absent for reference in in_text(text, place)):
            deferred.append(list(place))
            return text
        return fill_text(text, values, _language(place, quoting), budget)

    return Filled({key: _map(value, one, (key,)) for key, value in args.items()}, deferred)


def fill_at(
    args: dict[str, Any], places: list[Location], values: Mapping[str, Any], quoting: Quoting
) -> dict[str, Any]:
    """Fill in only the strings at `places`: the second half of `fill`, once the deferred values are loaded."""
    wanted, budget = {tuple(place) for place in places}, Budget(UNITS_IN_ACTIVITY, MAX_CHARACTERS_IN_ACTIVITY)

    def one(text: str, place: tuple[str | int, ...]) -> Any:
        return fill_text(text, values, _language(place, quoting), budget) if place in wanted else text

    return {key: _map(value, one, (key,)) for key, value in args.items()}


def fill_text(text: str, values: Mapping[str, Any], language: str | None = None, budget: Budget | None = None) -> Any:
    """The filled value of one string: a string, or any JSON value for a whole reference. Its paths share the budget."""
    budget = budget or Budget()
    if text.startswith("$$"):
        return text[1:]
    references = in_text(text)
    budget.count(_PER_CHARACTER * len(text) + _PER_INSERTION * len(references))
    if references and references[0].whole:
        if language and not is_literal(references[0], values):
            raise BadReference(_WHOLE_CODE.format(text))
        if is_literal(references[0], values):
            return text
        value = look_up(references[0], values, budget)
        budget.place(value)
        return value
    return _insert(text, lambda reference: look_up(reference, values, budget), language, budget)


def check_code(text: Any, language: str) -> None:
    """Check that every reference in a code argument can be quoted safely. Raises BadReference otherwise."""
    if not isinstance(text, str):
        return
    references = in_text(text)
    if references and references[0].whole:
        if references[0].root and not references[0].root.isdigit():
            raise BadReference(_WHOLE_CODE.format(text))
    elif len(references) > MAX_IN_CODE:
        raise BadReference(
            f"the code has {len(references)} references, {MAX_IN_CODE} are allowed; pass the values in a file"
        )
    elif references:
        sample(text, language)


def sample(text: str, language: str) -> str:
    """The text with some value in place of each insertion. Raises BadReference where none can be quoted safely."""
    return _insert(text, lambda _: "x", language, Budget())


def look_up(reference: Reference, values: Mapping[str, Any], budget: Budget | None = None) -> Any:
    """Resolve a reference. Raises BadReference when it selects nothing, or its path costs too much."""
    if reference.root not in values:
        raise BadReference(f"'{reference.text}' names '{reference.root}', which has no value")
    value = values[reference.root]
    if not reference.path:
        return value
    try:
        found = search(reference.path, value, budget)
    except BadExpression as error:
        code = TOO_COSTLY if error.code == TOO_COSTLY else None
        raise BadReference(f"'{reference.text}': {error.message}", code) from error
    if found is None:
        raise BadReference(
            f"'{reference.text}': the value of '{reference.root}' has nothing at '{reference.path}'"
            f" (it is {describe(value)})"
        )
    return found


def as_text(value: Any) -> str:
    """A value as inserted into text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def describe(value: Any) -> str:
    """A short description of a value's type, for error messages."""
    if isinstance(value, Mapping):
        return f"an object with {', '.join(map(str, list(value)[:8])) or 'no fields'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "a text" if isinstance(value, str) else f"the number {value}"


def _language(place: tuple[str | int, ...], quoting: Quoting) -> str | None:
    return quoting.get(str(place[0])) if len(place) == 1 else None


def _map(value: Any, change: Callable[[str, tuple[str | int, ...]], Any], place: tuple[str | int, ...]) -> Any:
    if isinstance(value, str):
        return change(value, place)
    if isinstance(value, list):
        return [_map(item, change, (*place, index)) for index, item in enumerate(value)]
    if type(value) not in PLAIN and isinstance(value, (dict, Mapping)):
        return {key: _map(item, change, (*place, key)) for key, item in value.items()}
    return value


def _insert(text: str, value_of: Callable[[Reference], Any], language: str | None, budget: Budget) -> str:
    if "{{" not in text:
        return text
    literals, inserted = _pieces(text, value_of)
    if not inserted:
        return "".join(literals)
    if language in ("python", "jmespath"):
        for value in inserted:
            budget.place(value)
        return join_python(literals, inserted) if language == "python" else join_jmespath(literals, inserted)
    texts = _texts(inserted, budget)
    return join_shell(literals, texts) if language == "shell" else _interleave(literals, texts)


def _texts(values: list[Any], budget: Budget) -> list[str]:
    """The values as texts, the same value written once."""
    written: dict[int, str] = {}
    for value in values:
        if id(value) not in written:
            written[id(value)] = as_text(value)
        budget.place(written[id(value)])
    return [written[id(value)] for value in values]


def _pieces(text: str, value_of: Callable[[Reference], Any]) -> tuple[list[str], list[Any]]:
    """The literal texts around the insertions (one more than these), and the values to insert."""
    literals, inserted, end = [""], [], 0
    for match in _INSERT.finditer(text):
        literals[-1] += text[end : match.start()]
        end = match.end()
        if match[2] is None:
            literals[-1] += "{{" + match[1] + "}}"
        else:
            inserted.append(value_of(Reference((), match[2], path_of(match[3]), match[0], False)))
            literals.append("")
    literals[-1] += text[end:]
    return literals, inserted


def _interleave(literals: list[str], inserted: list[str]) -> str:
    return literals[0] + "".join(text + literal for text, literal in zip(inserted, literals[1:], strict=True))
