"""A model that writes or revises a plan is told of the saved ones, as data and within bounds."""

from __future__ import annotations

from plansurvive.features.planning.prompts import TEMPLATES_CHARACTERS, planning_prompt, regenerate_prompt
from plansurvive.plans.model import Plan

ROWS = "- release-notes: Writes them | inputs: version (string, required)\n"
PLAN = Plan.model_validate({"steps": [{"id": "a", "tool": "sleep"}]})


def test_templates_are_named_with_the_way_to_call_them() -> None:
    for prompt in (
        planning_prompt("system", "request", "", ROWS),
        regenerate_prompt("system", "request", "", PLAN, "feedback", templates=ROWS),
    ):
        section = prompt.user.partition("=== TEMPLATES ===\n")[2].partition("\n===")[0]
        assert '{"tool": "plan", "args": {"template": "NAME", "inputs": {...}}}' in section
        assert "<<<DATA" in section
        assert ROWS in section
        assert prompt.system == "system"


def test_without_templates_the_prompt_is_as_it_was() -> None:
    assert planning_prompt("system", "request", "").user == planning_prompt("system", "request", "", "").user
    assert "TEMPLATES" not in planning_prompt("system", "request", "").user


def test_their_list_is_bounded() -> None:
    user = planning_prompt("system", "request", "", ROWS * 10_000).user
    assert len(user) < TEMPLATES_CHARACTERS + 2_000
