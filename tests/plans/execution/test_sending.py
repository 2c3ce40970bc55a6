"""Which HTTP requests need approval: those that send something, wherever in the request it is."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.change_log import Revision
from plansurvive.plans.definition.checks.will_ask import Ground, will_ask
from plansurvive.plans.execution.next_action import Ask, Call, next_action
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.model import Plan, ToolSpec
from plansurvive.plans.run import Options, Result, Run, Status
from plansurvive.plans.run.step_call import carries
from plansurvive.plans.step_state import Outcome, StepState
from tests.plans.building import NOW

HTTP = builtin_tools()["http_request"].spec
URL = "https://example.com/page"


def asks(args: dict[str, Any], http: ToolSpec = HTTP, **more: Any) -> bool:
    """Whether a step with these arguments, behind a step `a` with a secret value, asks a person."""
    strict, by_model = more.pop("strict", False), more.pop("by_model", "")
    steps = [{"id": "a", "tool": "read_file", "args": {"path": "x"}}, {"id": "h", "tool": "http_request", "args": args}]
    plan = Plan.model_validate({"id": "p", "inputs": {"q": {}}, "steps": steps})
    tools = {"read_file": builtin_tools()["read_file"].spec, "http_request": http}
    facts = Facts(tools=tools, workspace="/w", strict_approvals=strict)
    run = Run.of(plan, Options(**more.pop("options", {})), facts, {"q": "x"})
    for name, value in more.items():
        setattr(run, name, value)
    if by_model:
        run.revisions = [Revision(version=2, by="llm", time=NOW, diff=[by_model])]
    schedule = Schedule(run)
    schedule.begin(NOW)
    schedule.start("a", NOW)
    schedule.settle(
        "a", Outcome(Status.COMPLETED, Result(ok=True, value={"s": "SECRET", "host": "evil.com"}, timestamp=NOW)), NOW
    )
    action = next_action(schedule, "h")
    assert isinstance(action, Ask | Call)
    return isinstance(action, Ask)


SENDING: list[dict[str, Any]] = [
    *({"url": URL + "?q={{a.s}}"}, {"url": URL + "/{{a.s}}"}, {"url": "https://{{a.s}}.example.com/"}, {"url": "$a.s"}),
    *({"url": "https://{{a.host}}/"}, {"url": URL + "#{{a.s}}"}, {"url": URL, "headers": {"X": "$a.s"}}),
    *({"url": URL, "headers": {"X": "a {{a.s}}"}}, {"url": URL, "headers": "$a"}, {"url": URL, "body": "x"}),
    *({"url": URL, "body": {"k": ["$a"]}}, {"url": URL, "body": ""}, {"url": URL, "body": False}),
]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("args", SENDING)
def test_a_request_that_carries_a_value_of_a_step_or_a_body_needs_approval(args: dict[str, Any], method: str) -> None:
    assert asks(args | {"method": method})
    assert asks(args | {"method": method}, strict=True)
    assert not asks(args | {"method": method}, options={"approve_all": True})


@pytest.mark.parametrize(
    "args",
    [{"url": URL}, {"url": URL + "?q=1&r=2"}, {"url": URL + "?q={{inputs.q}}"}, {"url": URL, "headers": {"X": "y"}}],
)
def test_a_request_that_its_author_wrote_needs_none(args: dict[str, Any]) -> None:
    assert not asks(args)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_strict_approvals_ask_for_every_request_to_a_host_that_is_not_listed(method: str) -> None:
    trusting = HTTP.model_copy(update={"receivers": ["example.com"]})
    assert asks({"url": URL, "method": method}, strict=True)
    assert asks({"url": URL, "method": method}, trusting, strict=True) is (method == "POST")


REQUEST: dict[str, Any] = {"id": "h", "tool": "http_request", "args": {"url": URL}}
READ: dict[str, Any] = {"id": "a", "tool": "read_file", "args": {"path": "x"}}
GREP: dict[str, Any] = {"id": "g", "tool": "run_command", "args": {"command": "grep s x"}, "requiresApproval": False}
AFTER: dict[str, Any] = {**REQUEST, "dependsOn": ["b"]}
CONTROLLED: dict[str, list[dict[str, Any]]] = {
    "a condition": [READ, {**REQUEST, "when": "starts_with(to_string(a), 's')"}],
    "a switch": [READ, {"id": "b", "switch": [{"when": "a == 's'", "steps": [REQUEST]}]}],
    "a loop": [READ, {"id": "b", "forEach": "$a", "steps": [REQUEST]}],
    "a loop of itself": [READ, {**REQUEST, "forEach": "$a"}],
    "a repetition": [{**REQUEST, "repeat": {"until": "status == `200`", "limit": 3}}],
    "a handler": [READ, {"id": "b", "steps": [READ], "catch": [{"steps": [REQUEST]}]}],
    "a condition of a block": [READ, {"id": "b", "when": "a == 's'", "steps": [{"id": "c", "steps": [REQUEST]}]}],
    "a condition before": [READ, {**READ, "id": "b", "when": "a == 's'"}, AFTER],
    "a condition long before": [READ, {**READ, "id": "c", "when": "a == 's'"}, {**READ, "id": "b", "dependsOn": ["c"]},
                                AFTER],
    "a condition in a block before": [READ, {"id": "b", "steps": [{**READ, "id": "c", "when": "a == 's'"}]}, AFTER],
    "a command that may fail": [GREP, {**REQUEST, "dependsOn": ["g"]}],
    "a path that may be none": [READ, {"id": "b", "tool": "delete_file", "args": {"path": "$a"}}, AFTER],
    "a block behind a command": [GREP, {"id": "b", "dependsOn": ["g"], "steps": [REQUEST]}],
}  # fmt: skip
PLAIN: dict[str, list[dict[str, Any]]] = {
    "nothing": [REQUEST],
    "files": [READ, {**READ, "id": "b", "dependsOn": ["a"]}, AFTER],
    "a command beside it": [GREP, REQUEST],
    "a condition behind it": [REQUEST, {**READ, "dependsOn": ["h"], "when": "h.status == `200`"}],
    "a block": [{"id": "b", "steps": [READ, {**REQUEST, "dependsOn": ["a"]}]}],
}


def both(steps: list[dict[str, Any]]) -> tuple[bool, bool]:
    """Whether the request asks in a run, and whether `plan check` says so."""
    plan = Plan.model_validate({"id": "p", "steps": steps})
    tools = {name: tool.spec for name, tool in builtin_tools().items()}
    run = Run.of(plan, Options(), Facts(tools=tools, workspace="/w"), {})
    waiting = [node.id for node in run.outline.nodes.values()]  # what has steps inside is opened, as a run does
    for name in waiting:
        run.steps.setdefault(name, StepState())
        if run.outline.nodes[name].kind in ("block", "switch", "each", "repeat"):
            run.opened[name] = Opened(items=["s"], began=1, case=0)
            if run.outline.step(name).catch:
                run.opened[name] = Opened(body=Result(ok=False, timestamp=NOW), handler=0)
            waiting += [node.id for node in run.outline.open(name)]
    inner = next((each for each in waiting if run.outline.step(each).tool == "http_request"), None)
    ground = Ground(tools, lambda _: False, lambda _: [])
    told = any(each.step_id.split(".")[-1] == "h" and each.code == "TOOL" for each in will_ask(plan, ground))
    return (inner is None or carries(run, run.outline.step(inner))), told


@pytest.mark.parametrize("what", CONTROLLED)
def test_a_request_that_content_decides_about_asks_and_the_check_says_so(what: str) -> None:
    assert both(CONTROLLED[what]) == (True, True)


@pytest.mark.parametrize("what", PLAIN)
def test_a_request_that_is_made_whatever_files_say_does_not_ask(what: str) -> None:
    assert both(PLAIN[what]) == (False, False)


@pytest.mark.parametrize("url", [URL, URL + "?q=1", "https://example.com/" + "x" * 500])
def test_what_a_model_chose_while_the_plan_ran_needs_approval(url: str) -> None:
    assert asks({"url": url}, literal=True)  # a call of an agent
    assert asks({"url": url}, by_model=f"+ h: http_request {url}")
    assert asks({"url": url}, by_model=f'~ h.args.url: "a" -> "{url}"')
    assert asks({"url": url}, by_model="and 7 more")
    assert not asks({"url": url}, by_model="+ hh: http_request")


def test_hosts_that_the_worker_trusts_receive_without_approval() -> None:
    trusting = HTTP.model_copy(update={"receivers": ["example.com"]})
    for args in SENDING[:2] + SENDING[6:]:
        assert not asks(args, trusting)
    assert not asks({"url": URL}, trusting, literal=True)
    for args in SENDING[2:5]:
        assert asks(args, trusting)  # the host itself is a value
    assert asks({"url": URL, "method": "POST"}, trusting)


def test_control_a_description_recorded_before_asks_as_it_did() -> None:
    recorded = ToolSpec.model_validate(HTTP.model_dump(exclude={"sends", "receivers"}))
    assert not any(asks(args, recorded) for args in SENDING)
