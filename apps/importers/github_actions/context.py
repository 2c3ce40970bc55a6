"""What the contexts of a GitHub Actions workflow mean in a plan: `inputs.x`, `needs.job.outputs.x`, `matrix.x`, ...

What GitHub would supply and a plan has no counterpart for (`github.*`, `vars.*`, `secrets.*`) becomes an input of the
plan, so that the person who starts it says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plansurvive.apps.importers.common.expressions import Const, Node, NotCarried, Op, Path, text_of
from plansurvive.apps.importers.common.names import id_of
from plansurvive.apps.importers.common.report import Location, Report
from plansurvive.apps.importers.github_actions.conditions import texts_in

_FIXED = {
    ("runner", "os"): "Linux",
    ("runner", "temp"): "/tmp",  # noqa: S108 - as on GitHub's machines; only a text here
    ("github", "workspace"): ".",
    ("github", "server_url"): "https://github.com",
    ("github", "api_url"): "https://api.github.com",
}
_TYPES = {"boolean": "boolean", "number": "number"}


@dataclass
class Job:
    """A job as expressions see it."""

    id: str
    is_matrix: bool = False
    given: dict[str, Node] = field(default_factory=dict)
    """Outputs that are no values of its steps: constants, inputs, outputs of other jobs."""


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: in the workflow, or in a job and one of its steps."""

    report: Report
    title: str
    inputs: dict[str, dict[str, Any]]
    """The plan's inputs; grows as expressions need more."""
    jobs: dict[str, Job]
    job: str = ""
    has_matrix: bool = False
    steps: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By the id of a step: how its value is read (`run`, `outputs`, `answer`), and the id of the step that has it."""
    env: Mapping[str, Node] = field(default_factory=dict)

    def node(self, text: str, place: Location) -> Node:
        """A text with expressions in it; what cannot be carried over is reported and stays as it is."""
        return texts_in(text, lambda parts: self.meaning(parts, place), lambda why: self._lost(place, why))

    def text(self, value: Any, place: Location) -> str:
        """A value as a text in the arguments of a step."""
        if not isinstance(value, str):
            return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        try:
            return text_of(self.node(value, place))
        except NotCarried as error:
            self._lost(place, str(error))
            return text_of(Const(value))

    def with_env(self, given: Any, place: Location) -> Scope:
        """This scope with more environment variables."""
        if not isinstance(given, dict):
            if given:
                self.report.loss(place, "env that is an expression", "write the variables out")
            return self
        found = dict(self.env)
        for name, value in given.items():
            text = value if isinstance(value, str) else self.text(value, place)
            found[name] = self.node(text, (*place, name))
        return replace(self, env=found)

    def variables(self, place: Location) -> dict[str, str]:
        """The environment variables as arguments of a command."""
        found = {}
        for name, node in self.env.items():
            try:
                found[name] = text_of(node)
            except NotCarried as error:
                self._lost((*place, "env", name), str(error))
        return found

    def meaning(self, parts: tuple[str, ...], place: Location) -> Node:
        """What a context means here. Raises NotCarried."""
        root, *rest = parts
        root = root.lower()
        if parts[:3] == ("github", "event", "inputs") and len(parts) > 3:
            root, rest = "inputs", list(parts[3:])
        if root == "inputs" and rest:
            self.inputs.setdefault(id_of(rest[0]), {"type": "string", "description": f"inputs.{rest[0]}"})
            return Path("inputs", (id_of(rest[0]), *rest[1:]))
        if root == "matrix" and self.has_matrix:
            return Path("matrix", tuple(rest))
        if root in ("needs", "jobs") and len(rest) > 1:
            return self._of_job(rest)
        if root == "steps" and len(rest) > 1:
            return self._of_step(rest)
        if root == "env" and len(rest) == 1:
            if rest[0] not in self.env:
                raise NotCarried(f"env.{rest[0]}, which no `env` sets")
            return self.env[rest[0]]
        return self._of_github(root, rest, place)

    def _of_job(self, rest: list[str]) -> Node:
        job = self.jobs.get(rest[0])
        if job is None:
            raise NotCarried(f"needs.{rest[0]}: there is no such job")
        if rest[1] != "outputs" or len(rest) < 3:
            raise NotCarried(f"needs.{'.'.join(rest)}: whether a job succeeded cannot be asked")
        if rest[2] in job.given:
            return job.given[rest[2]]
        return Path(job.id, ((-1,) if job.is_matrix else ()) + tuple(rest[2:]))

    def _of_step(self, rest: list[str]) -> Node:
        if rest[0] not in self.steps:
            raise NotCarried(f"steps.{rest[0]}, which is not an earlier step of the job")
        kind, name = self.steps[rest[0]]
        if rest[1] == "outputs" and len(rest) > 2 and kind != "run":
            return Path(name, tuple(rest[2:]))
        if rest[1] in ("outcome", "conclusion") and kind != "answer":
            code = Path(name.removesuffix("_outputs") if kind == "outputs" else name, ("exitCode",))
            return Op("||", (Op("&&", (Op("==", (code, Const(0))), Const("success"))), Const("failure")))
        raise NotCarried(f"steps.{'.'.join(rest)}")

    def _of_github(self, root: str, rest: list[str], place: Location) -> Node:
        whole = ".".join((root, *rest))
        if (root, *rest) == ("github", "workflow"):
            return Const(self.title)
        if (root, *rest) == ("github", "job"):
            return Const(self.job)
        if (root, *rest[:1]) in _FIXED and len(rest) == 1:
            return Const(_FIXED[root, rest[0]])
        if root not in ("github", "vars", "secrets", "runner") or not rest:
            raise NotCarried(whole)
        name = id_of(re.sub(r"[^A-Za-z0-9]+", "_", whole))
        default = {"default": "workflow_dispatch"} if whole == "github.event_name" else {}
        if name not in self.inputs:
            self.inputs[name] = {"type": "string", "description": whole, **default}
            self._note_input(root, whole, name, place)
        return Path("inputs", (name,))

    def _note_input(self, root: str, whole: str, name: str, place: Location) -> None:
        if root == "secrets":
            how = "have the command read it on the worker, since inputs are stored in history and shown"
            self.report.loss(place, f"{whole} is the input {name}, where a secret would be stored", how)
        else:
            self.report.note(place, f"{whole} is an input of the plan now", f"--input {name}=VALUE")

    def _lost(self, place: Location, why: str) -> None:
        self.report.loss(place, f"${{{{ }}}}: {why}", "write what is meant")


def declared_inputs(triggers: Any) -> dict[str, dict[str, Any]]:
    """The inputs of `workflow_dispatch` and `workflow_call` as inputs of a plan."""
    found: dict[str, dict[str, Any]] = {}
    for event in ("workflow_dispatch", "workflow_call"):
        given = triggers.get(event) if isinstance(triggers, dict) else None
        inputs = given.get("inputs") if isinstance(given, dict) else None
        for name, each in inputs.items() if isinstance(inputs, dict) else ():
            found.setdefault(id_of(str(name)), _input(each if isinstance(each, dict) else {}))
    return found


def _input(given: dict[str, Any]) -> dict[str, Any]:
    options = given.get("options")
    one_of = f" (one of {', '.join(map(str, options))})" if isinstance(options, list) else ""
    kind = _TYPES.get(str(given.get("type")), "string")
    found: dict[str, Any] = {"type": kind, "description": (str(given.get("description") or "") + one_of).strip()}
    default = given.get("default")
    if default is None and not given.get("required"):
        default = {"boolean": False, "number": 0}.get(kind, "")
    if default is not None:
        found["default"] = str(default) if kind == "string" and not isinstance(default, str) else default
    return found if found["description"] else {key: each for key, each in found.items() if key != "description"}
