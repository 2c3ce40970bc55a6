"""A plan from a request by splitting it into tasks, as an agent does that chooses `plan_actions`: a step per task."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from plans.agents.as_plan import plan_of_tasks
    from plans.agents.prompts import decomposition_prompt, decomposition_system
    from plans.agents.run import NOT_FOR_AGENTS
    from plans.llm.answers import parse_tasks
    from plans.llm.prompt_parts import Prompt
    from plans.llm.schemas import decomposition_schema
    from plans.model import Plan
    from plans.run import Run
    from workflows.llm import Question, answered


async def split(run: Run, args: dict[str, Any]) -> Plan:
    """The plan for the run's request; `args` are those of its steps besides the objective. Raises Unanswered."""
    wanted = args.get("tools")
    offered = [spec for name, spec in run.facts.tools.items() if name not in NOT_FOR_AGENTS]
    tools = [spec for spec in offered if spec.name in wanted] if isinstance(wanted, list) else offered
    asked = Prompt(system=decomposition_system(tools), user=decomposition_prompt(run.request))
    question = Question("plan_actions", asked, "tasks", decomposition_schema(), "split the request into tasks")
    return plan_of_tasks(await answered(run, question, parse_tasks), run.plan, run.request, args)
