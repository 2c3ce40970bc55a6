"""The task `call`: HTTP requests, functions of the document; every other call is done by a person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from plansurvive.apps.importers.common.expressions import (
    Const,
    Made,
    Node,
    NotCarried,
    Path,
    Text,
    Unknown,
    joined,
    selected,
)
from plansurvive.apps.importers.common.expressions import text_of as to_text
from plansurvive.apps.importers.common.report import Location
from plansurvive.apps.importers.serverless.leaves import ASK, Leaf, asks
from plansurvive.apps.importers.serverless.state import State

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def call_of(name: str, task: Mapping[str, Any], state: State, functions: Mapping[str, Any], place: Location) -> Leaf:
    kind, given = str(task["call"]), task.get("with") if isinstance(task.get("with"), dict) else {}
    assert isinstance(given, dict)  # noqa: S101 - for mypy
    if isinstance(functions.get(kind), dict) and "call" in functions[kind]:
        inner = {**functions[kind], "with": {**(functions[kind].get("with") or {}), **given}}
        rest = {other: each for other, each in functions.items() if other != kind}  # a function cannot call itself
        return call_of(name, inner, state, rest, place)
    if kind != "http":
        state.report.loss((*place, "call"), f"a call of {kind}: a person is asked instead", ASK)
        step = asks(name, f"Call {kind} by hand, then answer done.", given, state, (*place, "with"))
        return Leaf(step, Unknown(f"the result of the call of {kind}"))
    place = (*place, "with")
    method = str(given.get("method", "get")).upper()
    if method not in _METHODS:
        state.report.loss((*place, "method"), f"the method {method}", "set args.method")
        method = "GET"
    args: dict[str, Any] = {"url": _url(given, state, place)} | ({"method": method} if method != "GET" else {})
    if isinstance(given.get("headers"), dict):
        args["headers"] = {
            str(key): state.text(each, (*place, "headers", key)) for key, each in given["headers"].items()
        }
    if given.get("body") is not None:
        args["body"] = state.value(given["body"], (*place, "body"))
    if given.get("redirect"):
        state.report.note((*place, "redirect"), "redirects are followed, and are no failure")
    body = Path(name, ("body",))
    whole: dict[str, Node] = {
        "statusCode": Path(name, ("status",)),
        "headers": Path(name, ("headers",)),
        "content": body,
    }
    whole |= {"request": Unknown("the request of an HTTP call")}
    return Leaf(
        {"id": name, "tool": "http_request", "args": args}, Made(whole) if given.get("output") == "response" else body
    )


def _url(given: Mapping[str, Any], state: State, place: Location) -> str:
    endpoint = given.get("endpoint")
    if isinstance(endpoint, dict):
        if endpoint.get("authentication"):
            how = "send a header; secrets are read where the worker runs"
            state.report.loss((*place, "endpoint", "authentication"), "the authentication of the call", how)
        endpoint = endpoint.get("uri")
    node = state.data(str(endpoint or ""), (*place, "endpoint"))
    if isinstance(node, Const):
        node = _template(str(node.value), state, (*place, "endpoint"))
    query = given.get("query")
    parts: list[Node] = [node]
    for number, (key, value) in enumerate(query.items() if isinstance(query, dict) else ()):
        each = state.data(value, (*place, "query", key))
        parts.append(Const(f"{'&' if number or '?' in str(endpoint) else '?'}{quote(str(key))}="))
        parts.append(Const(quote(str(each.value))) if isinstance(each, Const) else each)
    try:
        return to_text(joined(*parts))
    except NotCarried as error:
        state.lost((*place, "endpoint"), str(error))
        return to_text(Const(str(endpoint)))


def _template(uri: str, state: State, place: Location) -> Node:
    """A URI template: `{petId}` is a field of the task's input."""
    parts: list[Node] = []
    for piece in re.split(r"(\{[A-Za-z_]\w*\})", uri):
        if piece.startswith("{") and piece.endswith("}"):
            try:
                parts.append(selected(state.dot, piece[1:-1]))
            except NotCarried as error:
                state.lost(place, str(error))
                parts.append(Const(piece))
        elif piece:
            parts.append(Const(piece))
    return Text(tuple(parts))
