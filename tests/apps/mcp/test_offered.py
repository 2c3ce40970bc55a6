"""What the server offers, without a Temporal server: tools, their annotations and schemas, the check, the prompt."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp.types import TextContent

from plansurvive.apps.mcp.common.errors import told
from plansurvive.apps.mcp.common.host import Caller, Host
from plansurvive.apps.mcp.common.where import Where
from plansurvive.apps.mcp.tools.adding import Kind
from plansurvive.apps.mcp.tools.deciding import DECIDING
from plansurvive.apps.mcp.tools.sources import Chosen, Source, requested
from plansurvive.apps.mcp.tools.views import MAX_VALUE, Awaited, Shown, text_of
from plansurvive.client.cli.commands import COMMANDS
from plansurvive.client.local_tools import known_tools
from plansurvive.client.plan_file import plan_schema
from plansurvive.client.verbs.pending import Pending
from plansurvive.features.planning.prompts import planning_system
from plansurvive.plans.definition.parsing import MAX_BYTES
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.run import PlanStatus
from plansurvive.runtime.settings import Settings
from tests.apps.mcp.agents import agent_of, called, refused

DOCS = Path(__file__).parent.parent.parent.parent / "docs" / "mcp.md"
DELETES = {"steps": [{"id": "b", "tool": "delete_file", "requiresApproval": False, "args": {"path": "a.txt"}}]}
READS = {
    "plan_tools", "plan_schema", "plan_check", "plan_list", "plan_show", "plan_pending", "plan_events", "plan_logs",
    "plan_files",
}  # fmt: skip
"""What changes nothing, as `test_reading` proves of each."""


@pytest.fixture
def offline(state_dir: Path, workspace: Path) -> Host:
    """A host whose tools need no Temporal server."""
    environ = {"PLANS_STATE_DIR": str(state_dir), "PLANS_WORKSPACE": str(workspace)}
    return Host(Settings.read(environ), environ, "ann")


async def test_every_tool_says_what_it_does_what_it_takes_and_what_it_returns(offline: Host) -> None:
    offline.may_approve = True
    async with agent_of(offline) as agent:
        tools = (await agent.list_tools()).tools
    for tool in tools:
        assert tool.title, tool.name
        assert tool.description, tool.name
        assert tool.description.endswith("."), tool.name
        assert tool.output_schema, tool.name
        assert tool.input_schema["additionalProperties"] is False, tool.name
        notes = tool.annotations
        assert notes is not None
        assert (notes.read_only_hint is True) is (tool.name in READS), tool.name
        assert None not in (notes.destructive_hint, notes.idempotent_hint, notes.open_world_hint), tool.name


async def test_the_documented_table_is_that_of_the_tools(offline: Host) -> None:
    offline.may_approve = True
    async with agent_of(offline) as agent:
        tools = (await agent.list_tools()).tools
    rows = {tool.name: kind.name.lower() for tool in tools for kind in Kind if kind.value == tool.annotations}
    told = dict(re.findall(r"^\| `(plan_\w+)`(?:\\\*)? \| (\w+) \|", DOCS.read_text(), re.MULTILINE))
    assert told == rows


async def test_an_agent_is_not_offered_decisions_and_calling_one_says_who_decides(offline: Host) -> None:
    async with agent_of(offline) as agent:
        names = {tool.name for tool in (await agent.list_tools()).tools}
        assert not names & set(DECIDING)
        for name in DECIDING:
            code, text = await refused(agent, name, planId="p", stepId="b", digest="0" * 64)
            assert code == "FORBIDDEN"
            assert "plan_pending" in text


async def test_agents_may_decide_only_where_the_person_lets_them_and_may_decide_too(offline: Host) -> None:
    offline.may_approve = True
    offline.calling = lambda _: Caller("eve", may_decide=False)
    async with agent_of(offline) as agent:
        names = {tool.name for tool in (await agent.list_tools()).tools}
        assert set(DECIDING) <= names
        code, _ = await refused(agent, "plan_approve", planId="p", stepId="b", digest="0" * 64)
    assert code == "FORBIDDEN"


CHANGES: dict[str, dict[str, Any]] = {
    "plan_start": {"plan": DELETES},
    "plan_make": {"request": "tidy up"},
    "plan_edit": {"planId": "p", "edits": [{"op": "skip", "stepId": "a"}]},
    "plan_pause": {"planId": "p"},
    "plan_unpause": {"planId": "p"},
    "plan_cancel": {"planId": "p"},
    "plan_interrupt": {"planId": "p"},
    "plan_resume": {"planId": "p"},
    "plan_rerun": {"planId": "p", "only": "a"},
}


async def test_who_may_only_look_changes_nothing(offline: Host) -> None:
    offline.calling = lambda _: Caller("vera", may_operate=False)
    async with agent_of(offline) as agent:
        assert CHANGES.keys() == {tool.name for tool in (await agent.list_tools()).tools} - READS - {
            "plan_undo",
            "plan_decide",
        }
        for tool, arguments in CHANGES.items():
            code, text = await refused(agent, tool, **arguments)
            assert (code, "operator" in text) == ("FORBIDDEN", True), tool


async def test_asking_for_a_waiver_is_refused_and_not_ignored(offline: Host) -> None:
    async with agent_of(offline) as agent:
        for name in ("yes", "approveAll", "waivers", "granted", "owns", "knownPlans"):
            code, text = await refused(agent, "plan_start", plan=DELETES, **{name: True})
            assert (code, name in text) == ("BAD_ARGUMENTS", True)


async def test_wrong_arguments_and_unknown_tools_are_told_with_a_code(offline: Host) -> None:
    async with agent_of(offline) as agent:
        assert (await refused(agent, "plan_show"))[0] == "BAD_ARGUMENTS"
        assert (await refused(agent, "plan_show", planId="x" * 400))[0] == "BAD_ARGUMENTS"
        assert (await refused(agent, "plan_teleport"))[0] == "UNKNOWN_TOOL"
        assert (await refused(agent, "plan_tools", name="teleport"))[0] == "UNKNOWN_TOOL"
        assert (await refused(agent, "plan_check"))[0] == "BAD_USAGE"
        assert (await refused(agent, "plan_check", plan=DELETES, file="a.yaml"))[0] == "BAD_USAGE"


async def test_a_check_reports_every_problem_who_will_ask_and_that_nothing_is_waived(offline: Host) -> None:
    async with agent_of(offline) as agent:
        sound = await called(agent, "plan_check", plan=DELETES)
        assert sound["ok"]
        assert [each["stepId"] for each in sound["asks"]] == ["b"]
        assert "an agent's plan waives nothing" in sound["asks"][0]["reason"]
        assert sound["waived"] == ["b"]
        wrong = await called(agent, "plan_check", plan="steps:\n- {id: a, tool: teleport}\n- {id: a, tool: read_file}")
        assert not wrong["ok"]
        assert {"UNKNOWN_TOOL", "INVALID_ARGS"} <= {each["code"] for each in wrong["problems"]}
        text = await called(agent, "plan_check", plan="steps: [")
        assert [each["code"] for each in text["problems"]] == ["PLAN_NOT_YAML"]


async def test_a_file_is_read_only_below_the_directories_that_the_person_granted(
    offline: Host, workspace: Path, tmp_path: Path
) -> None:
    text = "steps: [{id: a, tool: sleep, args: {seconds: 1}}]"
    (workspace / "plan.yaml").write_text(text)
    (tmp_path / "secret.yaml").write_text(text)
    (workspace / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    async with agent_of(offline) as agent:
        assert (await called(agent, "plan_check", file="plan.yaml"))["ok"]
        for name in ("link.yaml", "../secret.yaml", str(tmp_path / "secret.yaml"), "/etc/passwd"):
            assert (await refused(agent, "plan_check", file=name))[0] == "OUTSIDE_ROOTS", name
        for name in ("..", str(tmp_path), "/"):
            code, _ = await refused(agent, "plan_start", file="plan.yaml", workspace=name)
            assert code == "OUTSIDE_ROOTS", name


async def test_a_file_that_is_not_there_is_not_said_to_be_elsewhere(offline: Host, workspace: Path) -> None:
    (workspace / "plan.yaml").write_text("steps: [{id: a, tool: sleep, args: {seconds: 1}}]")
    (workspace / "notes.txt").write_text("x")
    async with agent_of(offline) as agent:
        for name, code, *says in (
            ("nosuch.yaml", "NOT_FOUND", f"there is no file {workspace}/nosuch.yaml"),
            ("plan.yml", "NOT_FOUND", f"did you mean {workspace}/plan.yaml?"),
            (".", "NOT_REGULAR", "is a directory; pass a plan file in it"),
            ("notes.txt", "OUTSIDE_ROOTS", "'notes.txt' is not a plan file", "ends in .yaml or .yml or .json"),
        ):
            for tool in ("plan_start", "plan_check"):
                found, text = await refused(agent, tool, file=name)
                assert (found, [each for each in says if each not in text]) == (code, []), (tool, name, text)
        code, text = await refused(agent, "plan_start", file="plan.yaml", workspace="gone")
        assert (code, text) == ("BAD_WORKSPACE", "'gone' is not a directory; create it or choose another")


@pytest.mark.parametrize(
    ("tool", "said", "wanted"),
    [
        ("plan_start", "choose another with --id", "choose another with `id`"),
        ("plan_rerun", "start from (--from STEP), or (--only STEP)", "start from (`startAt`), or (`only`)"),
        ("plan_start", "give it with --input name=VALUE", "give it with `inputs`"),
        ("plan_start", "at most --max-parallel N", "at most `maxParallel` N"),
        ("plan_show", "`plan list` shows the plans", "plan_list shows the plans"),
        ("plan_show", "`plan resume a-b` runs the rest", "plan_resume runs the rest"),
        ("plan_show", "choose another with --id", "choose another with --id"),
        ("plan_start", "`plan resume a --workspace DIR`", "`plan resume a --workspace DIR`"),
        ("plan_start", "`plan init` makes one", "`plan init` makes one"),
    ],
)
async def test_an_agent_reads_of_arguments_and_not_of_options(offline: Host, tool: str, said: str, wanted: str) -> None:
    async with agent_of(offline) as agent:
        tools = {each.name: each for each in (await agent.list_tools()).tools}
    found = told(PlanError(said, "BAD_USAGE"), tools, tool)
    assert (found.structured_content or {})["message"] == wanted


async def test_wrong_arguments_are_told_in_plain_words(offline: Host) -> None:
    def edits(**edit: Any) -> dict[str, Any]:
        return {"planId": "p", "edits": [edit]}

    async with agent_of(offline) as agent:
        for tool, given, wanted in (
            ("plan_edit", edits(set={}), "edits.0: `op` is missing; write one of add, move, remove, set, skip, unskip"),
            ("plan_edit", edits(op="sett"), "edits.0: `op` is 'sett'; did you mean 'set'?"),
            ("plan_edit", edits(op="skip"), "edits.0.stepId: it is missing; add it"),
            ("plan_edit", edits(op="skip", stepId="a", stepID="a"), "edits.0.stepID: there is no such key; did you"),
            ("plan_start", {"plan": DELETES, "timeout": "soon"}, "timeout: should be a number; it is 'soon'"),
            ("plan_show", {"planId": "p", "wait": 600}, "wait: should be less than or equal to 50; it is 600"),
            ("plan_show", {}, "planId: it is missing; add it"),
        ):
            code, text = await refused(agent, tool, **given)
            assert (code, wanted in text) == ("BAD_ARGUMENTS", True), (tool, given, text)


async def test_an_agent_does_not_choose_the_workers(offline: Host) -> None:
    bound = {"id": "b", "tool": "sleep", "args": {"seconds": 1}, "queue": "others"}
    free = {"id": "a", "tool": "sleep", "args": {"seconds": 1}}
    plans: list[dict[str, Any]] = [
        {"queue": "others", "steps": [free]},
        {"steps": [bound]},
        {"steps": [{"id": "a", "steps": [bound]}]},
        {"steps": [{"id": "a", "tool": "plan", "args": {"steps": [bound]}}]},
    ]
    async with agent_of(offline) as agent:
        for plan in plans:
            code, text = await refused(agent, "plan_start", plan=plan)
            assert (code, "others" in text) == ("FORBIDDEN", True), plan


async def test_a_plan_of_any_size_is_refused_with_a_code(offline: Host) -> None:
    async with agent_of(offline) as agent:
        found = await called(agent, "plan_check", plan="#" * (MAX_BYTES + 1))
        assert [each["code"] for each in found["problems"]] == ["PLAN_TOO_LARGE"]
        deep: Any = []
        for _ in range(200):
            deep = [deep]
        assert not (await called(agent, "plan_check", plan={"steps": deep}))["ok"]


async def test_tools_and_schema_are_those_of_the_command_line(offline: Host) -> None:
    async with agent_of(offline) as agent:
        listed = await called(agent, "plan_tools")
        assert [each["name"] for each in listed["tools"]] == list(known_tools(offline.settings))
        (one,) = (await called(agent, "plan_tools", name="write_file"))["tools"]
        assert one["argsSchema"] == known_tools(offline.settings)["write_file"].args_schema
        assert (await called(agent, "plan_schema"))["planSchema"] == plan_schema()


async def test_clients_that_show_a_model_only_the_text_get_schemas_too(offline: Host) -> None:
    async with agent_of(offline) as agent:
        schema = (await agent.call_tool("plan_schema", {})).content[0]
        tool = (await agent.call_tool("plan_tools", {"name": "delete_file"})).content[0]
    assert isinstance(schema, TextContent)
    assert json.loads(schema.text) == plan_schema()
    assert isinstance(tool, TextContent)
    assert json.dumps(known_tools(offline.settings)["delete_file"].args_schema) in tool.text
    assert "await a person's approval" in tool.text


def test_the_text_of_a_pending_decision_has_the_call_on_one_line() -> None:
    asked = Awaited(plan_id="p", step_id="a", kind="approval", tool="run_command", args={"command": "rm\n\u202ex"})
    assert asked.text == 'p a: awaiting approval (run_command): {"command": "rm\\n\\u202ex"}'


def test_a_plan_that_has_just_been_started_is_not_taken_for_one_that_awaits_a_person() -> None:
    begun = Shown(plan_id="p", status=PlanStatus.DRAFT, has_ended=False, decide=Where(command="plan pending p"))
    assert "awaits no person; plan_show with `wait` follows it" in text_of(begun)


async def test_the_prompt_teaches_what_our_own_planner_is_taught(offline: Host) -> None:
    async with agent_of(offline) as agent:
        prompt = await agent.get_prompt("write_plan", {"request": "tidy up"})
    text = getattr(prompt.messages[0].content, "text", "")
    assert planning_system(known_tools(offline.settings).values()) in text
    assert "tidy up" in text
    assert "plan_check" in text


def test_a_call_that_is_too_large_to_show_has_no_digest_to_decide_by() -> None:
    item = Pending(plan_id="p", step_id="a", kind="approval", tool="t", args={"x": "y"}, digest="d")
    assert Awaited.of(item).digest == "d"
    large = Awaited.of(item.model_copy(update={"args": {"x": "y" * MAX_VALUE}}))
    assert (large.digest, large.is_whole, len(large.args["cut"])) == ("", False, MAX_VALUE)
    stored = {"s": LargeValue(sha256="0" * 64, bytes=1, preview="")}
    assert Awaited.of(item.model_copy(update={"large": stored})).digest == ""


async def test_instructions_say_who_decides(offline: Host) -> None:
    async with agent_of(offline) as agent:
        assert "You cannot approve" in str(agent.instructions)
    offline.may_approve = True
    async with agent_of(offline) as agent:
        assert "cannot approve" not in str(agent.instructions)


async def test_inputs_of_any_size_and_depth_are_refused_with_a_code(offline: Host) -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(InvalidPlan):
        requested(Source(plan=DELETES), Chosen({"x": deep}), offline.settings)
    async with agent_of(offline) as agent:
        code, _ = await refused(agent, "plan_start", plan=DELETES, inputs={"x": "y" * (MAX_BYTES + 1)})
    assert code == "BAD_INPUT"


def test_the_settings_in_the_set_up_are_what_clients_read() -> None:
    blocks = dict(re.findall(r"^```(toml|json)\n(.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL)[:2])
    codex = tomllib.loads(blocks["toml"])["mcp_servers"]["plans"]
    code = json.loads(blocks["json"])["servers"]["plans"]
    assert (codex["command"], codex["args"]) == (code["command"], code["args"]) == ("plan", ["mcp"])
    assert "mcp" in COMMANDS
