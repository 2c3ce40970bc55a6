"""Tracebacks in failures: what was raised comes first, and one line shows nothing else."""

from __future__ import annotations

import pytest

from plansurvive.plans.text.traces import HEAD, folded, raised, reason_first

TRACE = f'{HEAD}\n  File "<string>", line 3, in <module>\n    f(3)\nValueError: bad value: 3\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TRACE, "ValueError: bad value: 3"),
        (TRACE + "and a second line\n", "ValueError: bad value: 3"),
        (TRACE.replace("ValueError: bad value: 3", "KeyboardInterrupt"), "KeyboardInterrupt"),
        (TRACE.partition("\n")[2], "ValueError: bad value: 3"),
        (f"{TRACE}\nDuring handling of the above exception\n\n{TRACE.replace('ValueError', 'a.b.KeyError')}",
         "a.b.KeyError: bad value: 3"),
        ('  File "x.py", line 1\n    a b\n      ^\nSyntaxError: invalid syntax', "SyntaxError: invalid syntax"),
        ("no such file", ""),
        (HEAD, ""),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_traceback_raised_is_found(text: str, reason: str) -> None:
    assert raised(text) == reason
    first = reason_first(text)
    assert first.startswith(reason)
    assert first.endswith(text)
    assert folded(first) == (reason or text)


def test_a_text_without_a_traceback_behind_its_first_line_is_not_folded() -> None:
    assert folded("one\ntwo") == "one\ntwo"
    assert folded(f"exit code 1: {reason_first(TRACE)}") == "exit code 1: ValueError: bad value: 3"
