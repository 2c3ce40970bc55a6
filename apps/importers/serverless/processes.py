"""The task `run`: shell commands, scripts, containers, other workflows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from plansurvive.apps.importers.common.expressions import Const, Made, Node, NotCarried, Path, Text
from plansurvive.apps.importers.common.expressions import text_of as to_text
from plansurvive.apps.importers.common.names import id_of
from plansurvive.apps.importers.common.report import Location
from plansurvive.apps.importers.serverless.leaves import ASK, Leaf, asks
from plansurvive.apps.importers.serverless.state import State
from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions.references import check_code


def run_of(name: str, given: Mapping[str, Any], state: State, place: Location) -> Leaf:
    output = _run_output(name, given, state)
    if given.get("await") is False:
        state.report.loss((*place, "await"), "a process that is not awaited", "steps beside it do not wait: dependsOn")
    for kind in ("shell", "script", "container"):
        inner = given.get(kind)
        if isinstance(inner, dict):
            place = (*place, kind)
            if inner.get("stdin") is not None:
                state.report.loss((*place, "stdin"), "standard input of a process", "write it to a file first")
            step = {"shell": _shell, "script": _script, "container": _container}[kind](name, inner, state, place)
            return Leaf(step, output)
    called = given.get("workflow")
    if isinstance(called, dict):
        file = f"{id_of(str(called.get('name') or 'workflow'))}.plan.yaml"
        what = f"it runs the workflow {called.get('name')}"
        state.report.loss((*place, "workflow"), what, f"import that one: plan import FILE --out {file}")
        inputs = called.get("input")
        args = {"file": file} | ({"inputs": state.value(inputs, (*place, "workflow", "input"))} if inputs else {})
        return Leaf({"id": name, "tool": "plan", "args": args}, Path(name))
    state.report.loss(place, "a process of an unknown kind: a person is asked instead", ASK)
    return Leaf(asks(name, "Run this by hand, then answer done.", given, state, place), state.dot)


def _run_output(name: str, given: Mapping[str, Any], state: State) -> Node:
    code, out, err = (Path(name, (each,)) for each in ("exitCode", "stdout", "stderr"))
    every: dict[str, Node] = {"code": code, "stdout": out, "stderr": err}
    wanted: dict[str, Node] = {"stdout": out, "stderr": err, "code": code, "all": Made(every), "none": state.dot}
    return wanted.get(str(given.get("return", "stdout")), out)


def _shell(name: str, given: Mapping[str, Any], state: State, place: Location) -> dict[str, Any]:
    command = _command(str(given.get("command") or ""), state, (*place, "command"))
    arguments = given.get("arguments")
    if isinstance(arguments, list) and arguments:
        words = " ".join(_word(each, state, (*place, "arguments")) for each in arguments)
        command = f"set -- {words}\n{command}" if "\n" in command or "$" in command else f"{command} {words}"
    return _step(name, "run_command", {"command": command}, given, state, place)


def _script(name: str, given: Mapping[str, Any], state: State, place: Location) -> dict[str, Any]:
    code, language = given.get("code"), str(given.get("language") or "").lower()
    if not isinstance(code, str):
        state.report.loss((*place, "source"), "a script from elsewhere: a person is asked instead", "write its code")
        return asks(name, "Run this script by hand, then answer done.", given, state, place)
    if given.get("arguments"):
        state.report.loss((*place, "arguments"), "arguments of a script", "write the values in the code")
    if language.startswith("py"):
        if given.get("environment"):
            state.report.loss((*place, "environment"), "the environment of a script", "write the values in the code")
        return {"id": name, "tool": "run_python", "args": {"code": state.text(code, (*place, "code"))}}
    if language in ("js", "javascript"):
        state.report.note((*place, "language"), "it needs `node` where the worker runs")
        return _step(
            name, "run_command", {"command": to_text(Const(f"node -e {shlex.quote(code)}"))}, given, state, place
        )
    state.report.loss((*place, "language"), f"a script in {language}: a person is asked instead", ASK)
    return asks(name, "Run this script by hand, then answer done.", given, state, place)


def _container(name: str, given: Mapping[str, Any], state: State, place: Location) -> dict[str, Any]:
    state.report.loss(place, "a container: the plan runs docker", "docker must be there where the worker runs")
    words = ["docker run --rm", *(f"-e {key}" for key in given.get("environment") or {})]
    words.append(_word(given.get("image"), state, (*place, "image")))
    command = (
        f"{' '.join(words)} sh -c {shlex.quote(str(given['command']))}" if given.get("command") else " ".join(words)
    )
    for key in ("ports", "volumes", "lifetime", "name"):
        if given.get(key):
            state.report.loss((*place, key), f"{key} of a container", "add it to the command")
    return _step(name, "run_command", {"command": to_text(Const(command)) if given.get("command") else command},
                 given, state, place)  # fmt: skip


def _step(
    name: str, tool: str, args: dict[str, Any], given: Mapping[str, Any], state: State, place: Location
) -> dict[str, Any]:
    variables = given.get("environment")
    if isinstance(variables, dict):
        args["env"] = {str(key): state.text(each if isinstance(each, str) else str(each), (*place, "environment", key))
                       for key, each in variables.items()}  # fmt: skip
    return {"id": name, "tool": tool, "args": args | {"network": True}}


def _command(text: str, state: State, place: Location) -> str:
    """A command, with `${ ... }` of the workflow only where it is one as a whole; others are variables of the shell."""
    parts: list[Node] = []
    for piece in re.split(r"(\$\{ [^{}]*\})", text):
        is_expression = piece.startswith("${ ") and piece.endswith("}")
        parts += [state.node(piece, place) if is_expression else Const(piece)] if piece else []
    try:
        found = to_text(Text(tuple(parts)))
        check_code(found, "shell")
        return found.rstrip("\n")
    except (NotCarried, BadReference) as error:
        state.lost(place, str(error))
        return to_text(Const(text)).rstrip("\n")


def _word(value: Any, state: State, place: Location) -> str:
    text = state.text(value if isinstance(value, str) else str(value), place)
    return text if "{{" in text or (text.startswith("$") and not text.startswith("$$")) else shlex.quote(text)
