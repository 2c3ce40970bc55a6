"""Parses Python code, from any thread."""

from __future__ import annotations

import ast

TRIES = 100
NOT_PARSED = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises for code that does not parse."""


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


def syntax_error(code: str) -> str:
    """Why code does not parse, with its line; empty if it does."""
    try:
        parsed(code)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}" if error.lineno else error.msg
    except NOT_PARSED as error:
        return str(error) or type(error).__name__
    return ""
