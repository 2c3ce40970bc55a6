"""Recovery of a failed step by the LLM: whether to ask it, the prompt, and its choice as edits of the plan.

The choice passes the same validation as a person's edits (`plans.editing.apply_edits`). The LLM is asked at most
twice per step and five times per plan, and never about a failure that another attempt could make worse
(OUTCOME_UNKNOWN) or that a person chose (denied, cancelled). If the LLM changes arguments, a `requiresApproval: false`
no longer applies: the tool's own approval rule does.

A step in recovery is ready and awaits it: running would not be true, failed would block its dependents. The choice is
applied as edits, so one rule says what may be changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from plansurvive.features.planning.earlier_calls import history
from plansurvive.features.planning.prompts import planning_system, recovery_prompt
from plansurvive.plans.definition.checks.validation import calls_of
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import walk_step, with_bodies
from plansurvive.plans.editing.apply_edits import Revised, revise
from plansurvive.plans.editing.edits import AddStep, Edit, Edits, SetField
from plansurvive.plans.editing.inner_edits import siblings
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.llm.answers import Recovery
from plansurvive.plans.llm.prompt_parts import Prompt
from plansurvive.plans.model import Plan, Step, ToolSpec
from plansurvive.plans.run import DONE, Result, Run
from plansurvive.plans.run.step_call import digest_of, upcoming

PER_STEP = 2
"""Maximum number of recoveries of one step."""
PER_PLAN = 5
"""Maximum number of recoveries in one run."""
BY = "llm"
"""Author of the edits, in the change log."""
_NEVER = frozenset(("CANCELLED", "DENIED", "NOBODY_ANSWERED", "OUTCOME_UNKNOWN", "APPROVAL_TIMEOUT", "LLM_BUDGET"))
"""Codes of failures that are never recovered."""


def is_due(run: Run, step: Step, failure: Result) -> bool:
    """Whether to ask the LLM about the failure."""
    if not step.tool or step.for_each is not None or step.repeat is not None:
        return False  # what fails is a step inside it
    if (step.on_failure or run.plan.defaults.on_failure) != "ask_llm" or run.stopped or failure.code in _NEVER:
        return False
    if run.closing is not None:  # what closes a plan is not edited any more
        return False
    return run.steps[step.id].recoveries < PER_STEP and run.recoveries < PER_PLAN


def needs_approval(run: Run) -> bool:
    """Whether the LLM's choice needs a person's approval."""
    return run.plan.defaults.approve_recovery or run.facts.strict_approvals


def prompt(run: Run, step: Step, failure: Result) -> Prompt:
    """The prompt about the failure. Of a step inside a loop, it shows the item, and nothing of the other items."""
    around = [step.id, *(node.id for node in run.outline.ancestors(step.id))]
    beside = siblings(run, step.id) if len(around) > 1 else []
    nodes = [*beside, *(run.outline.nodes[each.id] for each in run.plan.steps)]
    rest = [
        node.step.model_copy(update={"id": run.outline.inner_name(node.id)})
        for node in nodes
        if node.id not in around and run.steps[node.id].status not in DONE
    ]
    tried = step.model_copy(update={"args": run.args_of(step)})
    error = f"{failure.code}: {failure.error}"
    goal = run.request or run.plan.title
    known = [dict(node.bindings) for name in reversed(around) if (node := run.outline.nodes[name]).bindings]
    system = planning_system(tools(run, step), about=goal)
    return recovery_prompt(system, goal, tried, error, history(run, step.id), rest, known)


def tools(run: Run, step: Step) -> list[ToolSpec]:
    """The tools that may recover the step: all those of the workers of its queue, as far as they are known."""
    names = _of_queue(run, step)
    return [spec for name, spec in run.facts.tools.items() if names is None or name in names]


def _of_queue(run: Run, step: Step) -> Collection[str] | None:
    """Names of the tools on the step's own queue; None if it is the plan's, or its workers were not asked."""
    return run.facts.queue_tools.get(step.queue) if step.queue and step.queue != run.plan.queue else None


def shown(run: Run, step: Step, proposal: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What a person is shown of a proposal, with the call that a retry would make, and the digest of all of it."""
    state, choice = run.steps[step.id], proposal.get("recovery", {})
    again = choice.get("action") == "retry"
    call = upcoming(run, step, choice.get("args") if again else None).call
    asked = {**proposal, "failure": (state.failure.error if state.failure else "") or ""}
    return asked | ({"call": {"tool": call.tool, "args": call.args}} if again else {}), digest_of(call, asked)


def choice_problems(run: Run, step: Step, choice: Recovery, now: datetime) -> list[str]:
    """Why the choice cannot be applied; empty if it can."""
    names = _of_queue(run, step)
    calls = [
        call for new in choice.steps for path, each in walk_step(new) for call in calls_of(each, path[: -len(each.id)])
    ]
    unknown = [call for call in calls if names is not None and call.tool not in names]
    if unknown:
        return [
            f"step '{call.path}': the workers of queue '{step.queue}' have no tool '{call.tool}'" for call in unknown
        ]
    if choice.action == "insert" and not run.outline.nodes[step.id].needs_siblings:
        text = (
            f"no step can be inserted before '{step.id}': it is not a step of a block, but one item or round of a step"
        )
        return [f"{text}; choose retry, skip or abort"]
    if refused := _beyond_models(run, step, choice):
        return refused
    try:
        applied(run, step, choice, now)
    except InvalidPlan as error:
        return [problem.text for problem in error.problems]
    except PlanError as error:
        return [error.message]
    return []


def _beyond_models(run: Run, step: Step, choice: Recovery) -> list[str]:
    """What is wrong with words of the choice that steps may use, but no model may write."""
    chosen: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
        (call.tool, call.args, {}) for new in choice.steps for _, each in walk_step(new) for call in calls_of(each)
    ]
    found, hints = dict[str, None](), Hints()
    chosen.insert(0, (step.tool, choice.args or {}, run.args_of(step)))
    for name, args, before in chosen:
        spec = run.facts.tools.get(name)
        if spec is None or (own := run.language.for_models(spec, [before])) is spec:
            continue
        for word in run.language.words:
            found |= {wrong.message: None for wrong in word.problems(own, args, {name: own}, hints)}
    return list(found)


def applied(run: Run, step: Step, choice: Recovery, now: datetime) -> Revised | None:
    """The plan edited by the choice; None if the choice does not edit it. Raises Refused or InvalidPlan."""
    edits = edits_of(run.plan, step, choice, queue=step.queue if _of_queue(run, step) is not None else None)
    if not edits:
        return None
    message = Edits(edits=edits, by=BY, comment=sentence(step.id, choice))
    return revise(run, message, now, recovering=step.id)


def edits_of(plan: Plan, step: Step, choice: Recovery, queue: str | None = None) -> list[Edit]:
    """The choice as edits of the plan; empty for skip, abort and a plain retry. `queue`: of the inserted steps."""
    if choice.action == "retry" and choice.args is not None:
        edits: list[Edit] = [SetField(op="set", step_id=step.id, path="args", value=choice.args)]
        if step.requires_approval is False:
            edits.append(SetField(op="set", step_id=step.id, path="requiresApproval", value=None))
        return edits
    if choice.action != "insert":
        return []
    bound = [_bound(each, queue) for each in choice.steps] if queue else choice.steps
    rows = [each.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for each in bound]
    critical = {"critical": True} if step.critical or (step.critical is None and plan.defaults.critical) else {}
    added: list[Edit] = [
        AddStep(op="add", step={**critical, **({"args": {}} if "tool" in row else {}), **row}, before=step.id)
        for row in rows
    ]
    needs = [*step.depends_on, *(each.id for each in choice.steps)]
    return [*added, SetField(op="set", step_id=step.id, path="dependsOn", value=needs)]


def _bound(step: Step, queue: str) -> Step:
    """The step, and those inside it, with their calls bound to a queue."""
    own = step.model_copy(update={"queue": queue}) if step.tool else step
    return with_bodies(own, lambda _, each: _bound(each, queue))


def sentence(step_id: str, choice: Recovery) -> str:
    """The choice as a sentence, for the change log, the log and Temporal's UI."""
    what = {"retry": "retry", "skip": "skip", "insert": f"insert {len(choice.steps)} steps and retry", "abort": "abort"}
    if choice.action == "retry" and choice.args is not None:
        what["retry"] = "retry with other arguments"
    return f"recovery of '{step_id}': {what[choice.action]}{f' ({choice.reason})' if choice.reason else ''}"[:1_000]
