"""Plans that are expensive to check, by shape and size: each repeats one thing that a check has to look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

ARGS = 60_000
"""Characters of arguments per step; the limit of a plan file is 64 KiB."""


def _json(*steps: dict[str, Any], **fields: Any) -> str:
    return json.dumps({"id": "hostile", "steps": list(steps), **fields})


def _filled(
    piece: str, end: str = "{{a}}", tool: str = "run_command", name: str = "command", start: str = ""
) -> Callable[[int], str]:
    """Steps whose code consists of one piece."""

    def of(size: int) -> str:
        code = start + piece * max((min(size, ARGS) - len(end)) // len(piece), 1) + end
        count = max(size // len(code), 1)
        return _json(
            {"id": "a", "tool": "read_file", "args": {"path": "a"}},
            *({"id": f"s{n}", "tool": tool, "args": {name: code}} for n in range(count)),
        )

    return of


def _steps(make: Callable[[int, int], dict[str, Any]]) -> Callable[[int], str]:
    """As many steps as fit, at most 20,000; `make` gets the number of a step and how many there are."""

    def of(size: int) -> str:
        count = min(max(size // (len(json.dumps(make(1_000, 2_000))) + 2), 2), 20_000)
        return _json(*(make(n, count) for n in range(count)))

    return of


def _step(n: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"s{n}", "tool": "sleep", "args": {"seconds": 1}} | fields


def _with_args(make: Callable[[int], Any], tool: str = "run_command") -> Callable[[int], str]:
    """Steps with large arguments; `make` gets their size."""

    def of(size: int) -> str:
        args = make(min(size, ARGS))
        count = max(size // len(json.dumps(args)), 1)
        return _json(
            {"id": "a", "tool": "read_file", "args": {"path": "a"}},
            *({"id": f"s{n}", "tool": tool, "args": args} for n in range(count)),
        )

    return of


def _unknown_dependencies(size: int) -> str:
    count = max(size // 11_000, 1)
    return _json(*(_step(n, dependsOn=[f"x{i:06}" for i in range(1_000)]) for n in range(count)))


def _tail_with_rings(size: int) -> str:
    count = size // 240
    names = [f"r{n}" for n in range(count)]
    return _json(
        *(_step(n, dependsOn=[f"s{n + 1}"]) for n in range(count)),
        _step(count, dependsOn=names),
        *({**_step(0, dependsOn=[f"q{n}"]), "id": f"r{n}"} for n in range(count)),
        *({**_step(0, dependsOn=[f"r{n}"]), "id": f"q{n}"} for n in range(count)),
    )


SHAPES: dict[str, Callable[[int], str]] = {
    "interpreters": _filled("sh "),
    "case": _filled("case "),
    "python": _filled("python ", "'{{a}}'"),
    "insertions": _filled("{{a}} "),
    "insertions after a shell": _filled("{{a}} ", tool="run_command"),
    "insertions in Python": _filled("[{{a}}]\n", "", "run_python", "code"),
    "placeholders in Python": _filled("x={{a}};", "", "run_python", "code"),
    "a long placeholder in Python": _filled("_", "\n" + "[{{a}}]\n" * 500, "run_python", "code", "y=_inserted_value_"),
    "placeholders in use in Python": _filled("_inserted_value_", "\nx={{a}}", "run_python", "code", "y="),
    "unclosed insertions": _filled("{{a.", "}}"),
    "braces": _filled("{", "{{a}}"),
    "blanks in braces": _filled("{{ ", "a}}"),
    "tests": _filled("[[ "),
    "brackets": _filled("["),
    "parentheses": _filled("( "),
    "substitutions": _filled("$("),
    "quotes": _filled("'\""),
    "flags": _filled(" -ccc"),
    "pipes": _filled("| "),
    "paths": _filled("/sh/python1.1"),
    "blanks after a separator": _filled(" ", "{{a}};"),
    "literal braces": _filled("{{{{x}}}} "),
    "unknown insertions": _filled("{{zz}} "),
    "costly paths": _filled("{{a.b[*].c|[0]}} "),
    "unknown dependencies": _unknown_dependencies,
    "unknown tools": _steps(lambda n, _: _step(n, tool=f"read_fil{n}")),
    "similar ids": _steps(lambda n, _: _step(n, id="a" * 100 + f"{n:06}", dependsOn=["a" * 100 + f"x{n:05}"])),
    "duplicate ids": _steps(lambda *_: _step(7)),
    "ids that differ in case": _steps(lambda n, _: _step(n, id=("aA"[n & 1] + "b") * 20)),
    "one long cycle": _steps(lambda n, count: _step(n, dependsOn=[f"s{(n + 1) % count}"])),
    "cycles of two": _steps(lambda n, count: _step(n, dependsOn=[f"s{n ^ 1}"] if n ^ 1 < count else [])),
    "cycles behind a tail": _tail_with_rings,
    "cycles by reference": _steps(lambda n, count: _step(n, tool="x", args={"t": f"$s{(n + 1) % count}"})),
    "all depend on all before": _steps(lambda n, _: _step(n, dependsOn=[f"s{i}" for i in range(max(n - 40, 0), n)])),
    "conditions": _steps(lambda n, _: _step(n, when="||".join(f"s{n}x{i}.value" for i in range(60)))),
    "short conditions": _steps(lambda n, _: _step(n, when=f"s{max(n - 1, 0)} > `{n}`")),
    "broken conditions": _steps(lambda n, _: _step(n, when="a.b[" * 100 + str(n))),
    "deep conditions": _steps(lambda n, _: _step(n, when="(" * 60 + f"s{n}" + ")" * 60)),
    "unknown fields": _steps(lambda n, _: _step(n, **{f"dependson{i}": 1 for i in range(50)})),
    "wrong types": _steps(lambda n, _: _step(n, critical="x", timeout="y", retry=[], notes=1, dependsOn=[1] * 50)),
    "unknown arguments": _with_args(lambda size: {f"comand{n}": 1 for n in range(size // 14)}),
    "wrong arguments and references": _with_args(
        lambda size: {"command": "x", "env": {f"e{n}": 1 if n & 1 else "{{a}}" for n in range(size // 14)}}
    ),
    "one long key": _with_args(lambda size: {"k" * (size // 2): ["$zz"] * (size // 14)}),
    "deep arguments": _with_args(lambda size: {"env": _nested(["{{zz}}"] * (size // 10))}),
    "escapes": _with_args(lambda size: {"command": "\0\x01\n" * (size // 14)}),
    "long texts": _steps(lambda n, _: _step(n, description="é\\\"" * 2_000)),
    "inputs": lambda size: _json(_step(1), inputs={f"i{n}": {"default": 1} for n in range(size // 25)}),
    "text that is not JSON": lambda size: '{"steps": [' + '{"a": "' * (size // 8),
    "a quote in every string": lambda size: "\\\"" * (size // 2),
    "fences": lambda size: "```json\n" * (size // 8),
    "blanks": lambda size: " " * size,
    "digits": lambda size: '{"steps": [' + "1" * size + "]}",
    "duplicate keys": lambda size: '{"steps": [' + ",".join(f'{{"k{n}": 1}}' for n in range(size // 14)) + "]}",
}  # fmt: skip


def _nested(value: Any) -> Any:
    for _ in range(50):
        value = [value]
    return value
