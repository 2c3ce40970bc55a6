"""What is wrong with a step that runs an agent, before it starts."""

from __future__ import annotations

from typing import Any

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.agents.language import LANGUAGE
from plansurvive.plans.definition.checks.validation import named_tool_problems, problems
from plansurvive.plans.model import Problem
from tests.plans.building import plan_of, spec, step


def test_the_form_of_an_agents_answer_must_be_a_json_schema() -> None:
    tools = {"agent": spec("agent", {"objective": {"type": "string"}, "outputSchema": {"default": None}})}

    def told(schema: Any) -> list[Problem]:
        args = {"objective": "Count.", "outputSchema": schema}
        return problems(plan_of(step("a", tool="agent", args=args)), tools, language=LANGUAGE)

    [problem] = told({"type": "strng"})
    assert (problem.code, problem.field) == ("INVALID_ARGS", "args.outputSchema")
    assert "not a valid JSON Schema: type: 'strng'" in problem.message
    assert told({"type": "object"}) == []
    assert [each.code for each in told({"type": "$b.kind"})] == ["BAD_REFERENCE"]


def test_the_tools_that_an_agent_may_call_are_looked_for() -> None:
    plan = plan_of(step("a", tool="agent", args={"objective": "x", "tools": ["note", "{{b.tool}}", "nte"]}))
    [problem] = named_tool_problems(plan, ["note"], LANGUAGE)
    assert (problem.code, problem.step_id, problem.field) == ("UNKNOWN_TOOL", "a", "args.tools")
    assert problem.message == "Unknown tool: nte; did you mean 'note'?"
    assert list(named_tool_problems(plan, ["note"], LANGUAGE, {"a"})) == []  # its workers may have others


def test_every_argument_called_tools_is_one_whose_names_are_looked_for() -> None:
    taking = {name for name, tool in load_tools(()).items() if "tools" in tool.spec.args_schema.get("properties", {})}
    assert taking == {each.name for each in LANGUAGE.tools if each.tool_args}


def test_a_form_that_is_none_once_it_is_filled_in_fails_the_step() -> None:
    [agent] = LANGUAGE.tools
    assert agent.problem({"objective": "x", "outputSchema": {"type": "nothing"}}).startswith("args.outputSchema: not a")
    assert agent.problem({"objective": "x"}) == ""
