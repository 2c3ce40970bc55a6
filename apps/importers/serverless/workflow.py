"""Imports Serverless Workflow 1.0 documents: inputs, tasks, outputs; what a plan has no place for is reported.

https://github.com/serverlessworkflow/specification/blob/main/dsl-reference.md
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from plansurvive.apps.importers.common.expressions import Made, Node, NotCarried, Path, Unknown, jmespath_of
from plansurvive.apps.importers.common.names import Names, id_of
from plansurvive.apps.importers.common.report import Report
from plansurvive.apps.importers.serverless.blocks import steps_of
from plansurvive.apps.importers.serverless.flow import Flow
from plansurvive.apps.importers.serverless.state import LOST, State

EVENTS = Path("inputs", ("events",))
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
_UNUSED = {
    "authentications": "authentications: send headers; secrets are read where the worker runs",
    "catalogs": "catalogs: write what is called as steps",
    "extensions": "extensions: write their tasks as steps",
    "secrets": "secrets: they are read where the worker runs",
    "errors": "",
    "functions": "",
    "retries": "",
    "timeouts": "timeouts: set timeout of the steps",
}


def plan_of(data: dict[str, Any], title: str, report: Report) -> dict[str, Any]:
    """The data of a plan; without steps if there is nothing to carry over."""
    document, use, given = (_object(data.get(key)) for key in ("document", "use", "input"))
    evaluate = _object(data.get("evaluate"))
    state = State(report, loose=evaluate.get("mode") == "loose")
    if evaluate.get("language", "jq") != "jq":
        report.loss(("evaluate", "language"), f"expressions in {evaluate['language']}", "write them in JMESPath")
    inputs = _inputs(given, report)
    if "on" in _object(data.get("schedule")):  # its input is the list of events that started it
        inputs["events"] = {"type": "array", "description": "The events that start the workflow"}
        state = State(report, EVENTS, EVENTS, {"workflow": Made({"input": EVENTS})}, state.loose)
    if "from" in given:
        start = state.node(given["from"], ("input", "from"))
        state = replace(state, dot=start, context=start)
    names = Names()
    flow = Flow(names, steps_of, _object(use.get("functions")), _object(use.get("retries")))
    made = flow.sequence(data.get("do"), state, ("do",))
    _notes(data, use, report)
    used = _used(made.steps)
    for name in sorted(set(used) - set(inputs)):
        inputs[name] = {"type": used[name], "description": "A field of the workflow's input"}
        report.note(("input",), f"the input {name} is not declared in the document: its type is a guess")
    heading = str(document.get("title") or document.get("name") or title)[:1_000]
    plan: dict[str, Any] = {"title": heading} if heading else {}
    plan |= {"inputs": inputs} if inputs else {}
    outputs = _outputs(data, made.state, report)
    steps = made.steps or ([flow.nothing()] if outputs else [])
    return plan | ({"outputs": outputs} if outputs else {}) | {"steps": steps}


def _inputs(given: dict[str, Any], report: Report) -> dict[str, dict[str, Any]]:
    schema = _object(_object(given.get("schema")).get("document"))
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    found: dict[str, dict[str, Any]] = {}
    if _object(given.get("schema")).get("resource"):
        report.loss(("input", "schema", "resource"), "a schema from elsewhere", "declare the inputs")
    for name, each in _object(schema.get("properties")).items():
        each = _object(each)
        kind = each.get("type") if each.get("type") in _TYPES else "string"
        value: dict[str, Any] = {"type": kind}
        value |= {"description": str(each["description"])} if each.get("description") else {}
        default = each.get("default")
        if default is None and name not in (required or []):
            default = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}[str(kind)]
        value |= {"default": default} if default is not None else {}
        found[id_of(str(name))] = value
        if set(each) - {"type", "description", "default", "title", "format"}:
            report.note(("input", "schema", "document", "properties", name), "only the type of an input is checked")
    return found


def _outputs(data: dict[str, Any], state: State, report: Report) -> dict[str, str]:
    """The plan's outputs: the last task's output, as `output.as` makes it."""
    given = _object(data.get("output"))
    node: Node = state.node(given["as"], ("output", "as")) if "as" in given else state.dot
    fields = node.fields if isinstance(node, Made) and node.fields else {"result": node}
    found = {}
    for name, each in fields.items():
        if isinstance(each, Unknown) and each.why != LOST:
            report.loss(("output",), f"the output: {each.why}", "add it to `outputs`")
        if isinstance(each, Unknown) or each in (Path("inputs"), EVENTS):
            continue
        try:
            found[id_of(str(name))] = jmespath_of(each)
        except NotCarried as error:
            report.loss(("output",), f"{name}: {error}", "add it to `outputs`")
    return found


def _notes(data: dict[str, Any], use: dict[str, Any], report: Report) -> None:
    schedule = _object(data.get("schedule"))
    if "cron" in schedule:
        report.note(("schedule",), "a schedule", f'plan schedule create NAME FILE --cron "{schedule["cron"]}"')
    elif "every" in schedule:
        report.note(("schedule",), "a schedule", "plan schedule create NAME FILE --every TIME")
    elif schedule:
        report.note(("schedule",), "what starts the workflow", "call `plan run` where that happens")
    if "timeout" in data:
        report.loss(("timeout",), "a time limit of the whole workflow", "set timeout of the steps")
    for key in use:
        text = _UNUSED.get(key, f"{key} of `use`")
        if text and use[key]:
            what, _, how = text.partition(": ")
            report.loss(("use", key), what, how)


def _used(steps: Any) -> dict[str, str]:
    """The inputs that the steps refer to, each with the type that its uses suggest."""
    found: dict[str, str] = {}
    waiting = [steps]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
            if "forEach" in item and (whole := re.fullmatch(r"\$inputs\.(\w+)", str(item["forEach"].get("items")))):
                found[whole[1]] = "array"
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, str):
            for name, after in re.findall(r"(?<![\w.])inputs\.([A-Za-z_]\w*)([.\[]?)", item):
                guess = {".": "object", "[": "array"}.get(after, "string")
                found[name] = guess if found.get(name, "string") == "string" else found[name]
    return found


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
