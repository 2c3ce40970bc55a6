"""Inserts values into a JMESPath expression as literals, so that a value never becomes a part of the expression.

A literal stands between backticks, as JSON (JMESPath, "Literal Expressions"). An insertion inside quotes would be part
of a text there, and its end could be written in the value: it is rejected, with the way to write it.

Rejected: values beside the data under names of their own, a second way to write references.
"""

from __future__ import annotations

import json
import re
from typing import Any

from plansurvive.plans.errors import BadReference

_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`""", re.DOTALL)
_QUOTES = re.compile("""['"`]""")


def join_jmespath(literals: list[str], values: list[Any]) -> str:
    """The expression with each value as a literal. Raises BadReference for a value inside quotes."""
    pieces, open_text = [literals[0]], _QUOTED.sub("", literals[0])
    for value, text in zip(values, literals[1:], strict=True):
        if _QUOTES.search(open_text):
            raise BadReference("a value in an expression must stand by itself, outside quotes: id == {{step.id}}")
        pieces += ["`" + json.dumps(value, ensure_ascii=True).replace("`", "\\u0060") + "`", text]
        open_text = _QUOTED.sub("", text)
    return "".join(pieces)
