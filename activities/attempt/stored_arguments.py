"""Fills in the references that a workflow left to the activity, because the values are stored outside history.

Only what the references select is loaded: of `$build.exitCode` nothing of 200 MB of output. An argument that is a whole
stream, such as write_file's `content: $build.stdout`, is not loaded at all if the tool takes a `StoredText`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

from plansurvive.activities.tools.tool import Tool
from plansurvive.plans.activity_io import Call
from plansurvive.plans.errors import ToolError
from plansurvive.plans.expressions.conditions import field_of
from plansurvive.plans.expressions.references import Location, Reference, fill_at, in_text
from plansurvive.plans.flow.batches.outcome import ITEMS
from plansurvive.plans.large_value import Composed, LargeValue
from plansurvive.runtime.value_store import StoredText, ValueStore, apart


async def filled(tool: Tool, call: Call, values: ValueStore) -> dict[str, Any]:
    """The arguments of the call with the references filled in.

    Raises BadReference, or ToolError: VALUE_MISSING, VALUE_CORRUPT, VALUE_TOO_LARGE.
    """
    deferred = call.deferred
    if not deferred:
        return call.args
    args, whole = dict(call.args), dict[str, StoredText]()
    for name in _receivers(tool):
        stream = _stream(args.get(name), call) if [name] in deferred else None
        if stream is not None:
            stored = await values.stream(*stream)
            whole[name] = StoredText(stored.stream, values, asyncio.get_running_loop())
    places = [place for place in deferred if place[0] not in whole]
    found = [reference for place in places for reference in in_text(str(at(args, place)))]
    known = dict(call.values)
    for root, large in call.large.items():
        used = [reference for reference in found if reference.root == root]
        if used:
            known[root] = await values.get(large, _fields(used, large))
    for root, composed in call.composed.items():
        if any(reference.root == root for reference in found):
            known[root] = await whole_value(composed, values)
    size = sum(each.bytes for each in call.large.values()) if _are_whole(found, call) else _MUCH
    return await apart(size, lambda: fill_at(args, places, known, call.quoting)) | whole


async def whole_value(composed: Composed, values: ValueStore) -> Any:
    """The value of a block or loop with the large ones inside it loaded. Raises ToolError: VALUE_TOO_LARGE, ..."""
    if composed.bytes > MAX_COMPOSED:
        text = f"the value has {composed.bytes} bytes; {MAX_COMPOSED} can be passed on. Write parts of it to files"
        raise ToolError("VALUE_TOO_LARGE", text)
    whole: dict[str, Any] = {"": composed.value}
    for part in composed.parts:
        target, place = cast("Any", whole), ["", *part.place]
        for key in place[:-1]:
            target = target[key]
        found = await values.get(part.large)
        if part.spread:
            first = cast("int", place[-1])
            target[first : first + part.spread] = found[ITEMS]
        else:
            target[place[-1]] = found
    return whole[""]


def as_texts(call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call with a text in place of a stored one, for checks of their form."""
    if not call.deferred:
        return args
    return {name: "" if isinstance(value, StoredText) else value for name, value in args.items()}


_MUCH = 1_000_000_000
MAX_COMPOSED = 200_000_000
"""Maximum size of the large values inside the value of one block or loop, in bytes: as of all that is filled in."""


def _receivers(tool: Tool) -> list[str]:
    """Names of the arguments that take a StoredText."""
    fields = tool.arguments.model_fields
    return [each.alias or name for name, each in fields.items() if StoredText in get_args(each.annotation)]


def _stream(text: Any, call: Call) -> tuple[LargeValue, str] | None:
    """The value and its field, if the text is a reference to a stream and nothing else."""
    references = in_text(text) if isinstance(text, str) else []
    if len(references) != 1 or not references[0].whole or references[0].root not in call.large:
        return None
    large, name = call.large[references[0].root], field_of(references[0].path, is_all=True)
    return (large, name) if name in large.streams else None


def _are_whole(references: Iterable[Reference], call: Call) -> bool:
    """Whether they stand for whole values as they are stored: nothing is computed, however large they are."""
    return all(each.whole and not each.path and each.root in call.large for each in references)


def _fields(references: Iterable[Reference], large: LargeValue) -> set[str]:
    """The streams of the value that the references may reach."""
    named = {field_of(reference.path) for reference in references}
    return set(large.streams) if "" in named else named & set(large.streams)


def at(args: Any, place: Location) -> Any:
    """What is at a place in arguments."""
    for key in place:
        args = args[key]
    return args


def changed(value: Any, place: Sequence[str | int], text: str) -> Any:
    """A copy of the value with the text at a place; what is beside it is shared."""
    if not place:
        return text
    if isinstance(value, list):
        index = int(place[0])
        return [*value[:index], changed(value[index], place[1:], text), *value[index + 1 :]]
    return {**value, place[0]: changed(value[place[0]], place[1:], text)}
