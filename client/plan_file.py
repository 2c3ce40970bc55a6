"""Loads plan files and checks them, without a server.

Files ending in .json are parsed as JSON, .yaml and .yml as YAML; any other file, and standard input (`-`), as JSON if
the text begins like JSON and as YAML otherwise. A file that cannot be opened raises PlanFileError, one that cannot be
parsed InvalidPlan.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from plansurvive.client.errors import PlanRefused
from plansurvive.client.feature import language
from plansurvive.plans.definition.checks.races import races
from plansurvive.plans.definition.checks.validation import certain, errors, named_tool_problems, problems
from plansurvive.plans.definition.locations import step_and_field
from plansurvive.plans.definition.near_names import MAX_NAMES, Hints
from plansurvive.plans.definition.parsing import MAX_BYTES, MAX_FOUND, Unreadable, read_plan, sound_part
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.model import Plan, Problem, Step, ToolSpec
from plansurvive.runtime.plan_files.lines import lines_of
from plansurvive.runtime.plan_files.text import data_of, text_of

STDIN = "-"
_ID = re.compile(r"""["']?\bid["']?\s*:\s*["']?([\w#-]{1,128})["']?[^\S\n]*(?:[,}#]|$)""", re.MULTILINE)
_PART = re.compile(r"""["']?\b(catch|finally|undo)["']?[^\S\n]*:""")


class PlanFileError(PlanError):
    """A plan file that cannot be opened. Codes: NOT_FOUND, NOT_REGULAR, NO_PERMISSION, UNREADABLE."""


@dataclass(frozen=True)
class PlanFile:
    """The content of a plan file, parsed but not validated."""

    name: str
    """The path as given; in angle brackets if it is no file: `<stdin>`, `<pasted>`."""
    text: str
    data: Any
    base: Path | None = None
    """Of a template: the directory that it is for."""
    template: str = ""
    """Of a template: its name."""

    @property
    def title(self) -> str:
        """Name for a plan without a title: the file's stem, or its directory's name if the stem is just `plan`."""
        if self.template:
            return self.template
        if self.name.startswith("<"):
            return ""
        stem = Path(self.name).stem
        return self.directory.name if stem.lower() == "plan" else stem

    @property
    def directory(self) -> Path:
        """The directory that relative paths in the plan refer to."""
        if self.base is not None:
            return self.base
        return Path.cwd() if self.name == "<stdin>" else Path(self.name).resolve().parent

    def line(self, problem: Problem) -> int | None:
        """Line number of the `id` of the step that a problem is about, or of a field of the plan; None if it has none.

        That of a step inside others is the first after those of the steps around it.
        """
        if problem.step_id is None or (problem.code == "PLAN_DUPLICATE_ID" and problem.severity == "error"):
            found = self._lines.get((problem.step_id, "" if problem.step_id else problem.field or ""), [])
            return found[-1] if found else None
        at, number = -1, None
        for name in problem.step_id.split(".") if problem.step_id else ():
            places = self._places.get(name, [])
            later = bisect_right(places, (at, sys.maxsize))
            if later < len(places):
                at, number = places[later]
            else:
                return next(iter(self._lines.get((problem.step_id, ""), [])), None)
        return number

    @cached_property
    def _lines(self) -> dict[tuple[str | None, str], list[int]]:
        """By path of a step, None for the plan, and field: the lines; found in the parsed text, which takes longer."""
        found: dict[tuple[str | None, str], list[int]] = {}
        for place, number in lines_of(self.text).items():
            path, rest = step_and_field(self.data, place)
            found.setdefault((path, ".".join(map(str, rest))), []).append(number)
        return {place: sorted(numbers) for place, numbers in found.items()}

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int]]]:
        """By id or part of a path, where it is written: position and line; found at once for all problems."""
        places: dict[str, list[tuple[int, int]]] = {}
        for pattern in (_ID, _PART):
            number, end = 1, 0
            for found in pattern.finditer(self.text):
                number, end = number + self.text.count("\n", end, found.start()), found.start()
                places.setdefault(found[1], []).append((end, number))
        return {name: sorted(each) for name, each in places.items()}


def load(path: str) -> PlanFile:
    """Read and parse a plan file. Raises PlanFileError, or InvalidPlan if it is neither JSON nor YAML."""
    name = "<stdin>" if path == STDIN else path
    content = _content(path)
    try:
        text = text_of(content, name)
        data = data_of(name, text)
    except Unreadable as error:
        raise _refused(name, error.problem) from None
    if not isinstance(data, Mapping) and (text := _of_others(name)):
        raise _refused(name, Problem(code="PLAN_NOT_YAML", message=text))
    return PlanFile(name, text, data)


_PROGRAM = "; {} runs code as a step"
_OTHERS = {
    ".py": ("a Python program", _PROGRAM.format("run_python")),
    ".sh": ("a shell script", _PROGRAM.format("run_command")),
    **dict.fromkeys((".js", ".mjs", ".ts"), ("a JavaScript program", _PROGRAM.format("run_command"))),
    ".go": ("a Go program", _PROGRAM.format("run_command")),
    ".toml": ("a TOML file", ""),
    ".md": ("a Markdown text", ""),
}
"""By the ending of a file's name, what it is instead of a plan, and what to do with it."""


def kind_of_others(name: str) -> str:
    """What a file is that is neither YAML nor JSON, by its name; empty if that says nothing."""
    return _OTHERS.get(Path(name).suffix.lower(), ("", ""))[0]


def _of_others(name: str) -> str:
    what, more = _OTHERS.get(Path(name).suffix.lower(), ("", ""))
    made = f"a plan is YAML or JSON with steps, and `plan init` makes a first one{more}"
    return f"{Path(name).name} is {what}; {made}" if what else ""


def _refused(name: str, problem: Problem) -> InvalidPlan:
    """What is raised of a file that holds no plan."""
    is_syntax = problem.code in ("PLAN_NOT_YAML", "PLAN_NOT_JSON") and "Markdown" not in problem.message
    if is_syntax and (other := _of_others(name)):
        problem = problem.model_copy(update={"message": other})
    return PlanRefused([problem], PlanFile(name, "", None))


def check(data: Any, tools: Mapping[str, ToolSpec]) -> tuple[Plan | None, list[Problem]]:
    """The plan, or None if its form is invalid, and all problems of it. A plan may be returned with problems.

    Of a plan that can run, also warnings about steps that race on a file.
    """
    plan = read_plan(data)
    if isinstance(plan, list):
        if len(plan) > MAX_FOUND:
            return None, plan
        sound = sound_part(data)
        return None, plan + (certain(problems(sound, tools, language=language())) if sound else [])
    found = [*certain(problems(plan, tools, language=language())), *named_tool_problems(plan, tools, language())]
    return plan, found if errors(found) else found + races_among(plan.steps)


def races_among(steps: Sequence[Step]) -> list[Problem]:
    """Warnings about steps that race on a file, see `plans.definition.checks.races`."""
    from plansurvive.activities.provenance.shell_writes import (
        written_by_shell,  # lazily: most commands need no parser of shells
    )

    return races(steps, written_by_shell)


def plan_schema() -> dict[str, Any]:
    """The JSON Schema of plan files."""
    found = Plan.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _content(path: str) -> bytes:
    try:
        if path == STDIN:
            return _bounded(sys.stdin.buffer)
        with Path(path).open("rb") as file:
            return _bounded(file)
    except FileNotFoundError:
        if "://" in path:
            raise PlanFileError(f"{path} is a URL; download it, and pass the file", "NOT_FOUND") from None
        if path.lstrip().startswith(("{", "[")):
            text = f"{path[:40]!r} is JSON, and not a file; save it in one, or pass `-` and give it on standard input"
            raise PlanFileError(text, "NOT_FOUND") from None
        raise missing(path) from None
    except IsADirectoryError:
        raise is_directory(path) from None
    except PermissionError:
        raise PlanFileError(f"no permission to read {path}; change its permissions", "NO_PERMISSION") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise PlanFileError(f"{path!r} cannot be read: {why}; pass another file", "UNREADABLE") from None


def missing(path: str | Path) -> PlanFileError:
    """What is raised of a file that is not there."""
    return PlanFileError(f"there is no file {path}{_near(Path(path))}", "NOT_FOUND")


def is_directory(path: str | Path) -> PlanFileError:
    """What is raised of a directory in the place of a plan file."""
    return PlanFileError(f"{path} is a directory; pass a plan file in it", "NOT_REGULAR")


def _near(path: Path) -> str:
    """Which file of the directory was probably meant, else where the path was looked for."""
    with suppress(OSError):
        near = Hints().near(path.name, [each.name for each in islice(path.parent.iterdir(), MAX_NAMES)])
        if near:
            return f"; did you mean {path.parent / near}?"
    return "; check the path" if path.is_absolute() else f" in {Path.cwd()}; check the path"


def _bounded(file: BinaryIO) -> bytes:
    return file.read(MAX_BYTES + 1)
