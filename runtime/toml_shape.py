"""Checks a TOML file of the operator against its model: what is wrong, in which line, and what may be written there.

One mechanism for all such files: each key by its path, what is allowed there, and of an unknown one which was meant.
Nothing of a value is quoted, as it may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Protocol, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from plansurvive.plans.definition.near_names import NONE, Foreign, Hints
from plansurvive.plans.definition.plain_words import in_plain_words, place_in
from plansurvive.runtime.settings import SettingError
from plansurvive.runtime.toml_file import parsed, refusal
from plansurvive.runtime.toml_lines import Lines

M = TypeVar("M", bound=BaseModel)
C = TypeVar("C", bound="Checked")
KeyPath = tuple[str | int, ...]
MOST = 10
"""Problems of a file that are listed."""
_NUMBERS = ("int_type", "float_type", "int_parsing", "float_parsing")
_TABLES = ("dict_type", "model_type", "model_attributes_type")


def shaped(
    model: type[M],
    text: str,
    path: Path,
    setting: str,
    *,
    quotes: bool = True,
    examples: Mapping[str, tuple[str, str]] | None = None,
    foreign: Foreign = NONE,
) -> M:
    """The content of a file as its model has it. Raises SettingError about `setting`, with the first problems.

    `quotes`: as in `parsed`. `examples`: by key of the whole file, the header of a table, in which NAME is that of the
    entry, and a line below it. `foreign`: as in `misfits`.
    """
    data = parsed(text, path, setting, quotes=quotes)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise wrong(text, path, setting, misfits(model, data, error, examples=examples, foreign=foreign)) from None


def misfits(
    model: type[BaseModel],
    data: Any,
    error: ValidationError,
    *,
    examples: Mapping[str, tuple[str, str]] | None = None,
    foreign: Foreign = NONE,
) -> list[tuple[KeyPath, str]]:
    """What is wrong with the data of a file: for each key its path, and what is allowed there.

    `examples`: as in `shaped`. `foreign`: names that other programs have for its keys.
    """
    found = dict[KeyPath, list[str]]()
    for each in error.errors(include_input=False, include_url=False):
        place = place_in(data, each["loc"], is_missing=each["type"] == "missing")
        found.setdefault(place, []).append(_wrong(model, place, each, examples or {}, data, foreign))
    return [(place, ", or ".join(dict.fromkeys(texts))) for place, texts in found.items()]


class Checked(Protocol):
    """A table that says what else is wrong with it."""

    @property
    def problems(self) -> list[str]:
        """Each as `KEY: what`."""
        ...


def checked(found: Mapping[str, C], table: str, text: str, path: Path, setting: str) -> Mapping[str, C]:
    """The tables below `table` of a file, by name. Raises SettingError about `setting`, with their first problems."""
    problems = [
        ((table, name, *key.split(".")), what)
        for name, each in found.items()
        for key, _, what in (problem.partition(": ") for problem in each.problems)
    ]
    if problems:
        raise wrong(text, path, setting, problems)
    return found


def wrong(text: str, path: Path, setting: str, problems: Iterable[tuple[Sequence[str | int], str]]) -> SettingError:
    """The error about a file: each problem with its line and the path of its key."""
    lines, found = Lines(text), [*problems]
    rows = [
        f"line {lines.of(place)}, {'.'.join(map(str, place))}: {what}" if place else what
        for place, what in found[:MOST]
    ]
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return refusal(setting, path, "; ".join([*rows, *more]))


def _wrong(
    model: type[BaseModel],
    place: KeyPath,
    error: Any,
    examples: Mapping[str, tuple[str, str]],
    data: Mapping[str, Any],
    foreign: Foreign,
) -> str:
    kind, message = error["type"], in_plain_words(str(error["msg"])).replace("a valid tuple", "a list")
    if kind == "extra_forbidden":
        known = [*dict.fromkeys(name for each in _types(model, place[:-1]) for name in _keys(each))]
        near = Hints().question(str(place[-1]), known, foreign)
        if not near and len(place) == 1:
            near = _without_its_table(model, str(place[0]), data[str(place[0])])
        return f"there is no such key{near or ('; there are ' + ', '.join(known) if known else '')}"
    if kind == "missing":
        return "it is missing"
    if kind in _TABLES:
        header, row = examples.get(str(place[0]), ("", "")) if place else ("", "")
        if not header:
            header, row = _table(model, place)
        header = header.replace("NAME", str(place[1])) if len(place) > 1 else header
        return f"should be a table: `{header}`, and below it `{row}`"
    if kind in ("list_type", "tuple_type") and any(_is_model(each) for each in _items(model, place)):
        return f"should be a list of tables: `[[{'.'.join(map(str, place))}]]`"
    message = message.removeprefix("String ")
    if kind in _NUMBERS and isinstance(given := _value(data, place), str) and given.strip().isdecimal():
        message += "; write it without quotes"
    return f"its name {message}" if "[key]" in error["loc"] else message


def _value(data: Any, place: KeyPath) -> Any:
    for part in place:
        data = data[part]
    return data


def _without_its_table(model: type[BaseModel], key: str, value: Any) -> str:
    """Of a key at the top that is a name: the table that it belongs in; empty if that is not certain."""
    inner = {
        table: _keys(each)
        for table in _keys(model)
        for of in _types(model, (table,))
        if get_origin(of) is dict
        for each in _flat(get_args(of)[1])
        if _is_model(each)
    }
    fits = [table for table, keys in inner.items() if isinstance(value, dict) and value.keys() & {*keys}]
    table = fits[0] if fits else next(iter(inner)) if len(inner) == 1 and len(_keys(model)) == 1 else ""
    if not table or not re.fullmatch(r"[A-Za-z0-9_-]+", key):
        return ""
    row = "" if isinstance(value, dict) else f", and below it `{_table(model, (table,))[1]}`"
    return f"; write `[{table}.{key}]`{row}"


def _table(model: type[BaseModel], place: KeyPath) -> tuple[str, str]:
    """The header of the table that belongs at a place, and a line of it."""
    name = ".".join(part for part in place if isinstance(part, str))
    for each in _types(model, place):
        if _is_model(each):
            fields = {field.alias or key: field for key, field in each.model_fields.items()}
            first = next((key for key, field in fields.items() if field.is_required()), next(iter(fields), "NAME"))
            return f"[[{name}]]" if place and isinstance(place[-1], int) else f"[{name}]", f"{first} = ..."
        if get_origin(each) is dict:
            inner = next((one for one in _flat(get_args(each)[1]) if _is_model(one)), None)
            if inner is not None:
                return f"[{name}.NAME]", _table(inner, ())[1]
    return f"[{name}]", "NAME = ..."


def _types(kind: Any, place: Sequence[str | int]) -> list[Any]:
    """What a value at a place may be, by the model of the whole."""
    found = _flat(kind)
    for part in place:
        found = [inner for each in found for inner in _below(each, part)]
    return found


def _items(model: type[BaseModel], place: KeyPath) -> list[Any]:
    return [inner for each in _types(model, place) for inner in _below(each, 0) if get_origin(each) in (list, tuple)]


def _below(kind: Any, part: str | int) -> list[Any]:
    if _is_model(kind):
        fields = kind.model_fields.items()
        return [one for name, field in fields if part in (name, field.alias) for one in _flat(field.annotation)]
    arguments = get_args(kind)
    if get_origin(kind) is dict:
        return _flat(arguments[1])
    return _flat(arguments[0]) if get_origin(kind) in (list, tuple) and arguments else []


def _flat(kind: Any) -> list[Any]:
    """The types of a union, without annotations."""
    if get_origin(kind) is Annotated:
        return _flat(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [one for each in get_args(kind) for one in _flat(each)]
    return [kind]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _keys(kind: Any) -> list[str]:
    return [field.alias or name for name, field in kind.model_fields.items()] if _is_model(kind) else []
