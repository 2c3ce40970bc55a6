"""Tasks with tasks inside: do, for, fork, try; and what all tasks share: `if`, `timeout`, the data after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from plansurvive.apps.importers.common.expressions import (
    Listed,
    Node,
    NotCarried,
    Path,
    Unknown,
    jmespath_of,
    roots_of,
    value_of,
)
from plansurvive.apps.importers.common.names import id_of
from plansurvive.apps.importers.common.report import Location
from plansurvive.apps.importers.serverless.flow import Flow, Made, listed, marked, within
from plansurvive.apps.importers.serverless.leaves import Leaf
from plansurvive.apps.importers.serverless.state import ERROR, State
from plansurvive.apps.importers.serverless.tasks import leaf_of, seconds_of

CODES = {
    "communication": ["HTTP_STATUS", "HTTP_UNREACHABLE", "HTTP_TIMEOUT"],
    "timeout": ["STEP_TIMEOUT", "HTTP_TIMEOUT", "COMMAND_TIMEOUT", "EVENT_TIMEOUT"],
    "validation": ["INVALID_ARGS"],
    "expression": ["BAD_REFERENCE", "BAD_EXPRESSION"],
    "runtime": ["COMMAND_FAILED"],
}
"""Codes of this project for the standard types of errors."""


def steps_of(name: str, task: dict[str, Any], state: State, flow: Flow, place: Location) -> Made:
    """The steps of one task, and the data after it."""
    inside = state.within(task, place)
    before = len(state.report.entries)
    if "set" in task:
        if "if" in task:
            state.report.loss((*place, "if"), "a `set` under a condition: it is always set", "use a switch")
        return Made(_after(state, inside.data(task["set"], (*place, "set")), task, place))
    if "do" in task and "for" not in task and "if" not in task:
        made = flow.sequence(task["do"], inside, (*place, "do"))
        return Made(_after(replace(state, context=made.state.context), made.state.dot, task, place), made.steps)
    ident = flow.names.new(name, "task")
    leaf = _made(ident, task, inside, flow, place)
    step = leaf.step
    if "if" in task:
        when = state.condition(task["if"], (*place, "if"))
        step = {"id": ident, "when": when, **step} if when else step
    _limit(step, task, state, place)
    output = leaf.output
    if "if" in task and set(roots_of(output)) & {ident}:
        output = Unknown(f"the output of {name}, which may be skipped")
    if leaf.context is not None:
        state = replace(state, context=leaf.context)
    return Made(_after(state, output, task, place), [marked(step, state, before)])


def _made(name: str, task: dict[str, Any], state: State, flow: Flow, place: Location) -> Leaf:
    if "for" in task:
        return _for(name, task, state, flow, place)
    if "fork" in task:
        return _fork(name, task, state, flow, (*place, "fork"))
    if "try" in task:
        return _try(name, task, state, flow, place)
    if "do" in task:
        made = flow.sequence(task["do"], state, (*place, "do"))
        return _block(name, made, flow, place)
    return leaf_of(name, task, state, flow.functions, place)


def _after(state: State, output: Node, task: Mapping[str, Any], place: Location) -> State:
    return state.after(output, task, place)


def _block(name: str, made: Made, flow: Flow, place: Location) -> Leaf:
    """A block of these steps; its value is their output, where that is one of its own values."""
    block: dict[str, Any] = {"id": name, "steps": made.steps or [flow.nothing()]}
    output, context = made.state.dot, within(name, made.state.context, made.ids)
    if not set(roots_of(output)) & set(made.ids):
        return Leaf(block, output, context)
    if set(roots_of(output)) <= set(made.ids):
        try:
            kept = context if context == made.state.context else Unknown(f"what is exported inside {name}")
            return Leaf({**block, "output": jmespath_of(output)}, Path(name), kept)
        except NotCarried as error:
            made.state.report.loss(place, f"its output: {error}", "write `output` in JMESPath")
    return Leaf(block, within(name, output, made.ids), context)


def _for(name: str, task: dict[str, Any], state: State, flow: Flow, place: Location) -> Leaf:
    given = task["for"] if isinstance(task["for"], dict) else {}
    where = (*place, "for")
    each = id_of(str(given.get("each") or "item"), "item")
    items: Any = None
    try:
        node = state.node(given.get("in"), (*where, "in"))
        items = f"${jmespath_of(node)}" if isinstance(node, Path) else value_of(node)
    except NotCarried as error:
        state.report.loss((*where, "in"), f"its items: {error}", "write forEach.items")
    if not isinstance(items, str | list):
        state.report.loss((*where, "in"), "its items are not imported", "write forEach.items")
        items = []
    variables = {**state.variables, each: Path(each), str(given.get("at") or "index"): Path("index")}
    made = flow.sequence(task.get("do"), replace(state, variables=variables), (*place, "do"))
    if "while" in task:
        state.report.loss((*place, "while"), "`while`: every item is worked through", "use `when`")
    block = _block(name, made, flow, place)
    step = {"id": name, "forEach": {"items": items, "as": each, "maxParallel": 1}, **block.step}
    context = made.state.context
    exports = state.context if context == state.context else Unknown(f"what is exported in each round of {name}")
    return Leaf(step, Path(name, (-1,)) if block.output == Path(name) else block.output, exports)


def _fork(name: str, task: dict[str, Any], state: State, flow: Flow, place: Location) -> Leaf:
    given = task["fork"] if isinstance(task["fork"], dict) else {}
    steps: list[dict[str, Any]] = []
    outputs: list[Node] = []
    context = state.context
    for branch, inner, where in listed(given.get("branches"), (*place, "branches")):
        made = flow.made_of(branch, inner, state, flow, where)
        if made.state.context != state.context:
            context = Unknown(f"what the branches of {name} export")
        if len(made.steps) > 1:  # a `do`: its tasks follow each other beside the other branches
            block = _block(flow.names.new(branch, "branch"), made, flow, where)
            made = Made(replace(made.state, dot=block.output), [block.step])
        steps += made.steps
        outputs.append(made.state.dot)
    if given.get("compete"):
        state.report.loss((*place, "compete"), "branches that compete: all of them run to their end", "cancel by hand")
    ids = [step["id"] for step in steps]
    seen = tuple(within(name, each, ids) for each in outputs)
    output = seen[0] if given.get("compete") and seen else Listed(seen)
    return Leaf({"id": name, "steps": steps or [flow.nothing()]}, output, context)


def _try(name: str, task: dict[str, Any], state: State, flow: Flow, place: Location) -> Leaf:
    caught = task.get("catch") if isinstance(task.get("catch"), dict) else {}
    assert isinstance(caught, dict)  # noqa: S101 - for mypy
    made = flow.sequence(task["try"], state, (*place, "try"))
    where = (*place, "catch")
    retry = _retry(caught.get("retry"), state, flow, (*where, "retry"))
    if retry and len(made.steps) > 1:
        state.report.loss((*where, "retry"), "all tasks of `try` again: each is retried by itself", "use repeat")
    for step in made.steps if retry else ():
        if "tool" in step:
            step["retry"] = retry
    block = _block(name, made, flow, place)
    inner = replace(state, variables={**state.variables, str(caught.get("as") or "error"): ERROR})
    handled = flow.sequence(caught.get("do"), inner, (*where, "do"))
    for key in ("when", "exceptWhen"):
        if key in caught:
            state.report.loss((*where, key), "a condition for catching an error", "choose by codes")
    catch: dict[str, Any] = {"steps": handled.steps or [flow.nothing()]}
    codes = _codes(caught.get("errors"), state, (*where, "errors"))
    step = {**block.step, "catch": [({"codes": codes} if codes else {}) | catch]}
    same = handled.state.context == state.context
    return Leaf(step, block.output, block.context if same else Unknown(f"what the catch of {name} exports"))


def _codes(given: Any, state: State, place: Location) -> list[str]:
    wanted = given.get("with") if isinstance(given, dict) else None
    if not isinstance(wanted, dict):
        return []
    kind = str(wanted.get("type") or "").rpartition("/")[2]
    others = ", ".join(sorted(set(wanted) - {"type"}))
    if others:
        state.report.loss((*place, "with"), f"errors chosen by {others}", "choose by `codes`")
    if kind and kind not in CODES:
        what = f"errors of type {wanted['type']}: any error is caught"
        state.report.loss((*place, "with", "type"), what, "choose by `codes`")
    return CODES.get(kind, [])


def _retry(given: Any, state: State, flow: Flow, place: Location) -> dict[str, Any]:
    """A retry policy, or the name of one."""
    policy = flow.retries.get(given) if isinstance(given, str) else given
    if not isinstance(policy, dict):
        if given is not None:
            state.report.loss(place, f"the retry policy {given}", "set retry")
        return {}
    limit = policy.get("limit") if isinstance(policy.get("limit"), dict) else {}
    assert isinstance(limit, dict)  # noqa: S101 - for mypy
    attempt = limit.get("attempt") if isinstance(limit.get("attempt"), dict) else {}
    assert isinstance(attempt, dict)  # noqa: S101 - for mypy
    count = attempt.get("count")
    found: dict[str, Any] = {"attempts": max(1, min(count, 100)) if isinstance(count, int) else 3}
    delay = seconds_of(policy.get("delay"))
    found |= {"delay": min(delay, 86_400)} if delay is not None else {}
    backoff = policy.get("backoff") if isinstance(policy.get("backoff"), dict) else {}
    assert isinstance(backoff, dict)  # noqa: S101 - for mypy
    found["factor"] = 2 if "exponential" in backoff else 1
    for key in ("when", "exceptWhen", "jitter"):
        if key in policy:
            state.report.loss((*place, key), f"{key} of a retry", "set retry")
    if "linear" in backoff or limit.get("duration") or attempt.get("duration"):
        state.report.loss(place, "a linear backoff or a limit of time of a retry", "set retry")
    return found


def _limit(step: dict[str, Any], task: Mapping[str, Any], state: State, place: Location) -> None:
    given = task.get("timeout")
    if given is None:
        return
    after = seconds_of(given.get("after")) if isinstance(given, dict) else None
    if not after:
        state.report.loss((*place, "timeout"), "a time limit by name, or one that is computed", "set timeout")
    elif step.get("tool") == "wait_for":
        step["args"]["timeout"] = after
    elif "tool" in step:
        step["timeout"] = after
    else:
        state.report.loss((*place, "timeout"), "a time limit of several tasks together", "set timeout of each step")
