"""Options that features add to a command: data of their packages, so that no help of a command loads a feature.

A command takes what was given for them as its argument `more`:

    @with_more("list")
    def list_(..., more: Given = NONE) -> None:
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Annotated, Any

import typer

from plansurvive.client.feature import options_of_features

Given = Mapping[str, Any]
"""By name with underscores, what was given; options that were not given are left out."""
NONE: Given = MappingProxyType({})


def with_more(command: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a function take the options that features add to a command, before its last parameter, `as_json`."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True)
        added = options_of_features(command)

        @wraps(function)
        def taking(**given: Any) -> None:
            more = {name: value for name in added if (value := given.pop(name)) not in (None, False, [])}
            function(**given, more=more)

        parameters = [each for name, each in own.parameters.items() if name != "more"]
        parameters[-1:-1] = [_parameter(name, *data) for name, data in added.items()]
        taking.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
        taking.__annotations__ = {each.name: each.annotation for each in parameters}
        return taking

    return decorate


def _parameter(name: str, metavar: str, sentence: str) -> inspect.Parameter:
    """An option: without a metavar a flag; with one that ends with `...`, it may be given more than once."""
    flag = f"--{name.replace('_', '-')}"
    kind: Any = bool if not metavar else list[str] | None if metavar.endswith("...") else str | None
    option = typer.Option(flag, metavar=metavar.removesuffix("...") or None, help=sentence)
    default = None if metavar else False
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[kind, option]
    )
