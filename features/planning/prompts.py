"""Prompts for writing and revising a plan, and for recovering a failed step (seed 004).

All of these share one system prompt per tool list, so that corrections and revisions benefit from prompt caching. The
model only proposes: its answers are validated and applied as edits, like those of a person.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from plansurvive.features.planning.control_flow import control_flow
from plansurvive.plans.llm.prompt_parts import (
    DATA_RULE,
    Guide,
    Prompt,
    ToolOutcome,
    clean,
    data,
    guidance,
    joined,
    outcomes_text,
    section,
    tools_text,
)
from plansurvive.plans.llm.shortened import json_line
from plansurvive.plans.model import Plan, Step, ToolSpec
from plansurvive.plans.model.step_fields import asked

SNAPSHOT_CHARACTERS = 60_000
PLAN_CHARACTERS = 60_000
ERROR_CHARACTERS = 4_000
TEMPLATES_CHARACTERS = 20_000


def planning_system(tools: Iterable[ToolSpec], guides: Sequence[Guide] = (), about: str = "") -> str:
    """The system prompt of all planning requests: role, tools, rules, control flow, guidelines, output format.

    `about`: the request, by which the tools of servers are chosen if there are too many.
    """
    specs = list(tools)
    return joined(
        [
            section("ROLE", f"{_ROLE}\n{DATA_RULE}"),
            section("AVAILABLE TOOLS", tools_text(specs, about)),
            section("RULES", _RULES),
            section("CONTROL FLOW", control_flow(spec.name for spec in specs)),
            section("GUIDELINES", _GUIDELINES),
            section("OUTPUT FORMAT", _FORMAT),
            guidance(guides),
        ]
    )


def planning_prompt(system: str, request: str, snapshot: str, templates: str = "") -> Prompt:
    """Ask for a plan that fulfils a request in a workspace. `templates`: those it may use, one per line."""
    workspace = data("Files of the workspace:", snapshot, SNAPSHOT_CHARACTERS) if snapshot.strip() else "It is empty."
    ask = "Generate the plan: one JSON object in the output format, nothing else."
    parts = [*_asked(request, workspace), _templates_section(templates), section("INSTRUCTIONS", ask)]
    return Prompt(system=system, user=joined(parts))


def regenerate_prompt(
    system: str,
    request: str,
    snapshot: str,
    plan: Plan,
    feedback: str,
    begun: Mapping[str, str] | None = None,
    history: Sequence[ToolOutcome] = (),
    templates: str = "",
) -> Prompt:
    """Ask for a revision of a plan after a reviewer's feedback. `begun`: status by id of the steps that have begun."""
    workspace = data("Files of the workspace:", snapshot, SNAPSHOT_CHARACTERS) if snapshot.strip() else "It is empty."
    ask = (
        "Revise the plan as the FEEDBACK asks. Keep everything it does not affect, and keep the ids of unchanged steps."
        " Answer with the complete revised plan: one JSON object in the output format, nothing else."
    )
    rows = [f"- {name}: {status}" for name, status in (begun or {}).items()]
    parts = [
        *_asked(request, workspace),
        _templates_section(templates),
        section("CURRENT PLAN", data("The current plan:", _plan_text(plan.steps), PLAN_CHARACTERS)),
        section("STEPS THAT HAVE BEGUN", "\n".join([_BEGUN, *rows])) if begun else "",
        section("TOOL HISTORY", outcomes_text(history)) if history else "",
        section("FEEDBACK", clean(feedback)),
        section("INSTRUCTIONS", ask),
    ]
    return Prompt(system=system, user=joined(parts))


def recovery_prompt(
    system: str, request: str, step: Step, error: str, history: Sequence[ToolOutcome], rest: Sequence[Step],
    known: Sequence[dict[str, Any]] = (),
) -> Prompt:  # fmt: skip
    """Ask what to do about a failed step. `history`: earlier tool calls; `rest`: steps not done yet.

    `known`: of a step inside loops, the names that each of them defines, with their values, from the outside in.
    """
    parts = [
        section("USER REQUEST", clean(request)) if request.strip() else "",
        section(
            "FAILED STEP", data(f"Step failed: {step.description or step.id}", _plan_text([step]), PLAN_CHARACTERS)
        ),
        section("ITEM OR ROUND", data(_ITEM, "\n".join(map(json_line, known)), ERROR_CHARACTERS)) if known else "",
        section("ERROR", data("Error:", error, ERROR_CHARACTERS)),
        section("TOOL HISTORY", outcomes_text(history)) if history else "",
        section("REMAINING PLAN", data("Steps not done yet:", _plan_text(rest), PLAN_CHARACTERS)) if rest else "",
        section("INSTRUCTIONS", _OPTIONS),
    ]
    return Prompt(system=system, user=joined(parts))


_ITEM = "The step failed in one place; your choice is about it alone. Values that its arguments may use there:"
_ROLE = """\
You help a user accomplish a task in their workspace by writing plans that people review and that are then carried out
step by step without you."""
_RULES = """\
A plan is a list of steps. Each step must:
1. Have a clear, specific description
2. Use exactly one tool from the available tools, or be a block (see CONTROL FLOW)
3. Include all required arguments for that tool
4. Specify dependencies on previous steps (by step ID)
5. Be achievable with the given tools
A step uses the value of another as "$step_1" (the whole value), "$step_1.rows[0].name" (a part of it) or
"{{step_1.name}}" (inserted into a longer text). A literal dollar sign is "$$". Paths are relative to the workspace."""
_GUIDELINES = """\
- Break complex tasks into smaller, manageable steps
- Use parallel execution where possible (steps with no dependencies)
- Request approval for destructive actions (deletes, overwrites): "requiresApproval": true
- Include verification steps (e.g., read a file after writing it)
- Consider edge cases and error handling; mark a step without which the rest is pointless: "critical": true"""
WORDS: Mapping[str, str] = MappingProxyType({"plan.role": _ROLE, "plan.rules": _RULES, "plan.guidelines": _GUIDELINES})
"""Parts of the system prompt by name, as a prompt set may replace them; DATA_RULE follows the role in any case."""
_FIELDS = ",\n".join(f'      "{name}": {field.example}' for name, field in asked(Step).items())
_FORMAT = f"""\
{{
  "title": "...",
  "steps": [
    {{
{_FIELDS}
    }},
    ...
  ],
  "estimatedDuration": 120
}}"""
_BEGUN = """\
The plan is being carried out. These steps cannot be changed; they keep their ids, arguments and results. Repeat them or
leave them out, and refer to their values by their ids. New steps need ids that are not in use yet."""
_TEMPLATES = (
    "Plans saved by the user. Where one fits, use it as one step:"
    ' {"tool": "plan", "args": {"template": "NAME", "inputs": {...}}}, with every required input.'
)
_OPTIONS = """\
Suggest one of:
1. Retry with different args: {"action": "retry", "args": {...}, "reason": "..."}
2. Skip and continue: {"action": "skip", "reason": "..."}
3. Insert new recovery steps, run before the failed step is tried again:
   {"action": "insert", "steps": [...], "reason": "..."}
4. Abort execution: {"action": "abort", "reason": "..."}
New args replace all arguments of the step. New steps are written as in a plan, with ids that are not in use yet.
Respond with one JSON object and nothing else. This replaces the output format above."""


def _templates_section(templates: str) -> str:
    return section("TEMPLATES", data(_TEMPLATES, templates, TEMPLATES_CHARACTERS)) if templates else ""


def _asked(request: str, workspace: str) -> list[str]:
    return [section("USER REQUEST", clean(request)), section("WORKSPACE", workspace)]


def _plan_text(steps: Iterable[Step]) -> str:
    rows = [step.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for step in steps]
    return json.dumps(rows, ensure_ascii=False, indent=1)
