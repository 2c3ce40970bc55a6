"""Parses Python code, from any thread."""

from __future__ import annotations

import ast

TRIES = 100


def parsed(code: str) -> ast.Module:
    """The syntax tree. Raises what `ast.parse` raises for code that does not parse: SyntaxError, ValueError and others.

    CPython 3.11 counts its recursion for all threads together, and ends the parsing in one of them with a SystemError
    when another parses at the same moment (github.com/python/cpython/issues/106905): then it is parsed again.
    """
    for _ in range(TRIES):
        try:
            return ast.parse(code)
        except SystemError:
            continue
    raise ValueError("it cannot be parsed now")
