"""Names of other programs for fields, arguments and tools: each has an answer, which names what there is."""

from __future__ import annotations

import pytest

from plansurvive.activities.tools.registry import load_tools
from plansurvive.plans.definition.checks.calls import unknown_tool
from plansurvive.plans.definition.foreign_names import FIELDS as FOREIGN
from plansurvive.plans.definition.foreign_names import FORMATS, no_tool
from plansurvive.plans.definition.near_names import Foreign, Hints
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.model.control_flow import ForEach, Repeat
from plansurvive.plans.model.rules import ApprovalRule, Retry

FIELDS = {
    info.alias or name
    for model in (Plan, Step, ForEach, Repeat, Retry, ApprovalRule)
    for name, info in model.model_fields.items()
}
OF_GITHUB_ACTIONS = (
    "name", "if", "uses", "run", "with", "env", "shell", "working-directory", "timeout-minutes", "continue-on-error",
    "needs", "strategy", "runs-on", "container",
)  # fmt: skip
"""Fields of its steps and jobs that a plan does not have."""


def test_a_name_that_has_an_answer_is_no_field_of_steps() -> None:
    assert not set(FOREIGN.answers) & {info.alias or name for name, info in Step.model_fields.items()}
    assert not set(FORMATS) & FIELDS


def test_each_name_stands_for_fields_arguments_or_tools_that_there_are() -> None:
    tools = load_tools(())
    arguments = {name for tool in tools.values() for name in tool.spec.args_schema.get("properties", {})}
    meant = {each for names in FOREIGN.names.values() for each in names.split()}
    assert meant <= FIELDS | arguments | set(tools)


@pytest.mark.parametrize("name", ["working-directory", "working_directory", "workingDirectory", "timeout-minutes"])
def test_the_parts_of_a_name_may_be_joined_in_any_way(name: str) -> None:
    assert FOREIGN.answer(name)
    assert FOREIGN.answer(name) == FOREIGN.answer(name.replace("-", "").replace("_", "").lower())


@pytest.mark.parametrize("name", OF_GITHUB_ACTIONS)
def test_each_field_of_github_actions_has_an_answer(name: str) -> None:
    found = read_plan({"steps": [{"id": "a", "tool": "sleep", "args": {"seconds": 1}, name: 1}]})
    assert isinstance(found, list)
    [problem] = found
    assert problem.field == name
    assert "known:" not in problem.message


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_another_program_is_answered_as_a_whole(name: str) -> None:
    found = read_plan({name: {}, "version": "3", "name": "x", "on": "push"})
    assert isinstance(found, list)
    assert [each.field for each in found] == [name]
    assert FORMATS[name] in found[0].message


def test_a_field_that_is_missing_is_not_reported_beside_the_one_that_means_it() -> None:
    found = read_plan({"steps": [{"id": "a", "tool": "sleep", "forEach": {"in": [1], "var": "x"}}]})
    assert isinstance(found, list)
    assert [each.field for each in found] == ["forEach.in", "forEach.var"]


def test_a_name_of_another_program_comes_before_a_similar_one_and_that_before_an_answer() -> None:
    foreign, hints = Foreign({"approvers": "by others.by"}, {"type": "leave it out"}), Hints()
    assert hints.question("approvers", ["approve", "others"], foreign) == "; did you mean 'others.by'?"
    assert hints.question("approvers", ["approver"], foreign) == "; did you mean 'approver'?"
    assert hints.question("Type", ["types"], foreign) == "; did you mean 'types'?"
    assert hints.question("Type", ["kind"], foreign) == "; leave it out"
    assert not hints.question("other", ["kind"], foreign)


@pytest.mark.parametrize("name", ["bash", "Bash", "BASH"])
def test_a_tool_of_another_program_is_named_wherever_one_is_asked_for(name: str) -> None:
    for said in (unknown_tool(name, ["run_command"], Hints()), no_tool(name, ["run_command"])):
        assert said.endswith("; did you mean 'run_command'?")
