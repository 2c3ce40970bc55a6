"""The steps of a GitHub Actions job: `run` becomes a command, `uses` a question to a person, unless it is not needed.

An action is a program of its own, which no plan has. Those that only prepare a runner are reported; for every other
one a step asks a person to do its work and to say so: nothing is left out silently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from plansurvive.apps.importers.common.expressions import Const, Node, NotCarried, Path, Text, joined, shown, text_of
from plansurvive.apps.importers.common.report import Location
from plansurvive.apps.importers.github_actions.context import Scope
from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions.references import check_code

MAX_SECONDS = 86_400
"""Longest time limit of a command."""
NOTHING = {"id": "nothing", "tool": "sleep", "args": {"seconds": 0}}
"""A step that does nothing: a block needs one."""
_NOT_NEEDED = {
    "actions/checkout": "the plan works on the files of its workspace",
    "actions/upload-artifact": "all jobs share the workspace",
    "actions/download-artifact": "all jobs share the workspace",
    "actions/upload-pages-artifact": "all jobs share the workspace",
    "actions/cache": "the workspace stays as it is between runs",
    "actions/cache/restore": "the workspace stays as it is between runs",
    "actions/cache/save": "the workspace stays as it is between runs",
}
_SETUP = re.compile(r"(?:[\w.-]+/)(?:setup-[\w.-]+|[\w.-]*-setup|rust-toolchain|toolchain|action-setup)")
_GIVEN = re.compile(r"\$\{?((?:GITHUB|RUNNER)_[A-Z_]+)\b")
_FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "GITHUB_STATE")
_BASH = re.compile(
    r"\[\[|<<<|\bpipefail\b|^\s*function\s|\w=\(|&>|<\(|\$\{\w+(?:\[|,,|\^\^|//?)|\bdeclare\b", re.MULTILINE
)
_TO_JSON = """\
import json, pathlib
name = {name}
found, rows = dict(), iter(pathlib.Path(name).read_text().splitlines())
for row in rows:
    key, mark, end = row.partition("<<")
    if mark and "=" not in key:
        found[key] = "\\n".join(iter(lambda: next(rows, end), end))
    elif "=" in row:
        key, _, value = row.partition("=")
        found[key] = value
pathlib.Path(name + ".json").write_text(json.dumps(found))
"""


@dataclass
class Ran:
    """What became of one step: the steps of the plan in order; none, if it is not needed."""

    steps: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Defaults:
    """What `defaults.run` and the job say for its commands."""

    shell: str = ""
    cwd: str = ""
    minutes: float | None = None


def command_step(given: dict[str, Any], name: str, scope: Scope, defaults: Defaults, place: Location) -> Ran:
    """A `run`. With outputs that others use, two more steps read what it wrote to $GITHUB_OUTPUT."""
    scope = scope.with_env(given.get("env"), (*place, "env"))
    shell = (str(given.get("shell") or defaults.shell).split() or [""])[0]
    script = str(given.get("run"))
    outputs = any(kind == "outputs" and owner == f"{name}_outputs" for kind, owner in scope.steps.values())
    args: dict[str, Any] = {}
    if shell in ("python", "python3"):
        node = scope.node(script, (*place, "run"))
        args = {"code": _code(node, "python", {}, scope, place)}
        tool, outputs = "run_python", False
        if given.get("env"):
            scope.report.loss((*place, "env"), "environment variables of a Python step", "write the values in its code")
    elif shell in ("", "bash", "sh"):
        tool, env = "run_command", scope.variables(place) | _given_variables(script, scope, place)
        args = {"command": _shell(script, name, shell, outputs, env, scope, place)}
        cwd = given.get("working-directory") or defaults.cwd
        args |= {"cwd": scope.text(cwd, (*place, "working-directory"))} if cwd else {}
        args |= {"env": env} if env else {}
    else:
        scope.report.loss((*place, "shell"), f"the shell {shell}", "write it as a command, run_python or a tool")
        text = scope.text(script, (*place, "run"))
        return Ran([question(name, f"Run this with {shell}, then answer done:\n\n{text}")])
    args |= _limits(given, defaults, scope, place) | {"network": True}
    step = {"id": name, "tool": tool, "args": args}
    return Ran([step, *_read_outputs(name, scope)] if outputs else [step])


def action_step(given: dict[str, Any], name: str, scope: Scope, place: Location) -> Ran:
    """A `uses`."""
    uses = str(given.get("uses"))
    action = uses.partition("@")[0]
    place = (*place, "uses")
    inputs = given.get("with") if isinstance(given.get("with"), dict) else {}
    assert isinstance(inputs, dict)  # noqa: S101 - for mypy
    if action in _NOT_NEEDED and not ({"repository", "ref", "submodules"} & set(inputs)):
        scope.report.note(place, f"{uses} is not needed: {_NOT_NEEDED[action]}")
        return Ran()
    if _SETUP.fullmatch(action):
        what = ", ".join(f"{key}: {shown(value)}" for key, value in inputs.items())
        scope.report.loss(place, f"{uses}{f' ({what})' if what else ''}", "install it where the worker runs")
        return Ran()
    scope.report.loss(place, f"the action {uses}: a person is asked instead", "write it as a command, or as a tool")
    rows = [f"Do what the action {uses} did, then answer."]
    for key, value in inputs.items():
        is_secret = "secrets." in str(value)  # which no question may show
        text = text_of(Const(f"({value})")) if is_secret else scope.text(value, (*place[:-1], "with", key))
        rows.append(f"- {key}: {text}")
    wanted = [used for kind, used in scope.steps.values() if kind == "answer" and used == name]
    return Ran([question(name, "\n".join(rows), outputs=bool(wanted))])


def question(name: str, text: str, *, outputs: bool = False) -> dict[str, Any]:
    """A step that asks a person to do something; with `outputs`, for an object of texts."""
    answer = {"schema": {"type": "object"}} if outputs else {"choices": ["done"]}
    return {"id": name, "tool": "ask", "args": {"question": text[:20_000], **answer}}


def _shell(
    script: str, name: str, shell: str, outputs: bool, env: dict[str, str], scope: Scope, place: Location
) -> str:
    node: Node = scope.node(script, (*place, "run"))
    if shell != "sh" and _BASH.search(script):
        scope.report.loss((*place, "run"), "it is written for bash, and runs with sh", "call bash with a script file")
    if shell == "bash" and re.search(r"[^|]\|[^|]", script):
        scope.report.loss(
            (*place, "run"), "pipefail: a command that fails before a pipe goes unnoticed", "check for it"
        )
    if "::set-output" in script or "::set-env" in script:
        scope.report.loss((*place, "run"), "::set-output and ::set-env", "write to a file, or print JSON")
    rows = [row for row in script.splitlines() if row.strip() and not row.strip().startswith("#")]
    before = "set -e\n" if len(rows) > 1 else ""
    if outputs:
        file = Text((Const(f'"$HOME/{_file(scope.job, name)}"'), *_each(scope)))
        parts = (Const('mkdir -p "$HOME/.outputs"\nexport GITHUB_OUTPUT='), file, Const('\n: > "$GITHUB_OUTPUT"\n'))
        node = joined(*parts, node)
        env.pop("GITHUB_OUTPUT", None)
        before = "set -e\n"
    return _code(joined(Const(before), node) if before else node, "shell", env, scope, place).rstrip("\n")


def _code(node: Node, language: str, env: dict[str, str], scope: Scope, place: Location) -> str:
    """Code with references. Where one cannot be quoted safely, its value comes as an environment variable."""
    text = _text(node, scope, place)
    try:
        check_code(text, language)
    except BadReference as error:
        if language == "python":
            scope.report.loss((*place, "run"), error.message, "write the value in another place")
            return _text(Const("".join(_raw(part) for part in _parts(node))), scope, place)
        parts: list[Node] = []
        for part in _parts(node):
            if not isinstance(part, Const):
                variable = f"VALUE_{len(env) + 1}"
                env[variable] = _text(part, scope, place)
                part = Const(f"${variable}")
            parts.append(part)
        scope.report.note((*place, "run"), "some values come as environment variables, VALUE_1 and so on")
        text = _text(Text(tuple(parts)), scope, place)
    return text


def _text(node: Node, scope: Scope, place: Location) -> str:
    parts: list[Node] = []
    for part in _parts(node):
        try:
            text_of(part)
        except NotCarried as error:
            scope.report.loss((*place, "run"), f"${{{{ }}}}: {error}", "compute the value in a step")
            part = Const(_raw(part))
        parts.append(part)
    return text_of(Text(tuple(parts)))


def _parts(node: Node) -> tuple[Node, ...]:
    return node.parts if isinstance(node, Text) else (node,)


def _raw(node: Node) -> str:
    return shown(node.value) if isinstance(node, Const) else "expression-not-carried-over"


def _limits(given: dict[str, Any], defaults: Defaults, scope: Scope, place: Location) -> dict[str, Any]:
    """The time limit and whether it may fail."""
    found: dict[str, Any] = {}
    minutes = given.get("timeout-minutes", defaults.minutes)
    if isinstance(minutes, int | float) and not isinstance(minutes, bool) and minutes > 0:
        found["timeout"] = min(round(minutes * 60, 3), MAX_SECONDS)
    elif minutes is not None:
        scope.report.loss((*place, "timeout-minutes"), "a time limit that is an expression", "set args.timeout")
    may_fail = given.get("continue-on-error")
    if may_fail is True:
        found["allowFailure"] = True
    elif may_fail not in (None, False):
        scope.report.loss((*place, "continue-on-error"), "an expression", "set args.allowFailure")
    return found


def _given_variables(script: str, scope: Scope, place: Location) -> dict[str, str]:
    """The variables that GitHub sets and a script uses."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(_GIVEN.findall(script)):
        if name in scope.env:
            continue
        if name in _FILES:
            found[name] = "/dev/null"
            if name in ("GITHUB_ENV", "GITHUB_PATH"):
                what = f"what it writes to ${name} does not reach later steps"
                scope.report.loss((*place, "run"), what, "set args.env of those steps")
            continue
        root, _, rest = name.lower().partition("_")
        try:
            found[name] = text_of(scope.meaning((root, rest), (*place, "run")))
        except NotCarried as error:
            scope.report.loss((*place, "run"), f"${name}: {error}", "set it in args.env")
    return found


def _read_outputs(name: str, scope: Scope) -> list[dict[str, Any]]:
    """Two steps: the file of a command's outputs as JSON, and its value."""
    file = _file(scope.job, name)
    whole = f'"{file}-" + str({{{{index}}}})' if scope.has_matrix else f'"{file}"'
    path = f"{file}-{{{{index}}}}.json" if scope.has_matrix else f"{file}.json"
    code = _TO_JSON.replace("{name}", whole)
    return [
        {"id": f"{name}_json", "tool": "run_python", "args": {"code": code}, "dependsOn": [name]},
        {"id": f"{name}_outputs", "tool": "read_json", "args": {"path": path}, "dependsOn": [f"{name}_json"]},
    ]


def _file(job: str, name: str) -> str:
    return f".outputs/{job}.{name}"


def _each(scope: Scope) -> tuple[Node, ...]:
    return (Const("-"), Path("index")) if scope.has_matrix else ()
