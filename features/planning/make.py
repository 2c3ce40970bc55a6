"""`plan make`: the LLM turns a request into a plan in review, into a plan file or, with --yes, into a finished run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from plansurvive.client.cli.follow.ctrl_c import unless_ctrl_c
from plansurvive.client.cli.follow.follow import exit_code, follow, show_summary
from plansurvive.client.cli.review import screen_here
from plansurvive.client.cli.run import MaxParallel, NewId, Timeout, Workspace
from plansurvive.client.cli.terminal import output
from plansurvive.client.cli.terminal.options import AsJson, check_out
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.cli.terminal.spans import seconds_of
from plansurvive.client.live.feed import saying_attempts
from plansurvive.client.plan_file import races_among
from plansurvive.client.requests.llm import require_llm
from plansurvive.client.requests.workspaces import named
from plansurvive.client.rpc import plan_file
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Started
from plansurvive.features.planning import verbs
from plansurvive.plans.run import Options
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.steps.written import written_rows
from plansurvive.runtime.task_queues import serves_this_machine

NOT_SOUND = 1

Yes = Annotated[bool, typer.Option("--yes", help="Start at once and approve every step in advance.")]
Out = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write the plan to a file; do not run it.")]
OnFailure = Annotated[
    Literal["block", "ask_llm", "stop"],
    typer.Option("--on-failure", help="What to do when a step has used up its attempts."),
]
Request = Annotated[str, typer.Argument(metavar="REQUEST", help="What the plan should achieve.")]


def make(
    request: Request,
    workspace: Workspace = None,
    yes: Yes = False,
    out: Out = None,
    max_parallel: MaxParallel = None,
    on_failure: OnFailure = "ask_llm",
    plan_id: NewId = None,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Have the LLM write a plan. It stays in review until `plan begin`."""
    check_out(out, yes)
    fields: dict[str, Any] = {"defaults": {"onFailure": on_failure}}
    limit = seconds_of(timeout, "--timeout")
    follow_making(MakeRequest(request, workspace, yes, out, max_parallel, fields, plan_id, as_json, timeout=limit))


def follow_making(request: MakeRequest) -> NoReturn:
    """Draft the plan, show it, and run it if asked to. Exits with the command's exit code."""
    begun: list[Started] = []
    raise typer.Exit(unless_ctrl_c(lambda here: request.make(here, begun), begun))


@dataclass(frozen=True)
class MakeRequest:
    """Arguments of one command that drafts a plan."""

    request: str
    workspace: str | None
    yes: bool
    out: str | None
    max_parallel: int | None
    fields: dict[str, Any]
    plan_id: str | None
    as_json: bool
    split: dict[str, Any] | None = None
    """Arguments of the agent steps if the plan is an agent's task list; else None."""
    timeout: float | None = None
    """Seconds that the plan may take once it has begun."""

    async def make(self, here: Connected, begun: list[Started]) -> int:
        """Start drafting, wait for the draft, then show, write or run it. Returns the exit code."""
        local = here.connection.is_on_this_machine and await serves_this_machine(here.client, here.settings.task_queue)
        options = Options(
            workspace=named(self.workspace, here.settings, local=local),
            max_parallel=self.max_parallel,
            approve_all=self.yes,
            review=not self.yes,
            by=author(),
            split=self.split,
            timeout=self.timeout,
        )
        require_llm(here.settings, own_worker=here.keeps_worker)
        started = await verbs.make(
            here.client,
            self.request,
            options=options,
            fields=self.fields,
            plan_id=self.plan_id,
            queue=here.settings.task_queue,
        )
        begun.append(started)
        link = here.link(started.workflow_id)
        if not self.as_json:
            output.show(f"plan {started.plan_id}" + (f"\n{link}" if link else ""))
            output.say(f"The LLM is {'writing the plan' if self.split is None else 'splitting the request'} ...")
        async with saying_attempts(here.client, started.plan_id, output.say):
            view = await runs.drafted(here.client, started.plan_id, output.say)
        screen = None if self.as_json or self.out or self.yes else screen_here()
        if screen is not None:
            if await screen.show(here, started.plan_id, until_begun=True):
                return await self._to_the_end(here, started)
            view = await runs.show(here.client, started.plan_id)
        if view.problems:
            return self._show_draft(started, view)
        if self.out:
            return await self._write(here, started, self.out)
        if self.yes:
            return await self._to_the_end(here, started)
        self._show(started, view)
        return 0

    def _show_draft(self, started: Started, view: PlanView) -> int:
        if self.as_json:
            shown = view.to_json()
            output.show_json({"planId": started.plan_id, "status": shown["status"], "problems": shown["problems"]})
            return NOT_SOUND
        if view.steps:
            output.show("\n".join(rows_of(view)))
        output.show_problems(view.problems, "The draft")
        name = started.plan_id
        if view.steps:
            output.say(
                f"The draft stays in review until its problems are fixed.\n"
                f"  change      plan edit {name} --set STEP.args.NAME=VALUE"
            )
        else:
            output.say("The LLM has written no plan; the draft stays in review until it has.")
        output.say(f'  regenerate  plan regenerate {name} "FEEDBACK"\n  discard     plan cancel {name}')
        return NOT_SOUND

    async def _write(self, here: Connected, started: Started, file: str) -> int:
        found = await plan_file(here.client, started.plan_id)
        found.pop("version", None)
        Path(file).write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        await runs.cancel(here.client, started.plan_id)
        if self.as_json:
            output.show_json({"planId": started.plan_id, "file": file})
        else:
            output.show(f"Wrote {file}; run it with: plan run {file}")
        return 0

    async def _to_the_end(self, here: Connected, started: Started) -> int:
        if self.as_json:
            summary = await runs.wait(here.client, started.plan_id)
            output.show_json({**started.model_dump(mode="json"), "summary": summary.to_json()})
        else:
            summary = await follow(here, started.plan_id, as_json=False)
            show_summary(summary)
        return exit_code(summary)

    def _show(self, started: Started, view: PlanView) -> None:
        if self.as_json:
            output.show_json({**started.model_dump(mode="json"), "status": view.status, "plan": view.to_json()})
            return
        output.show("\n".join(rows_of(view)))
        name = started.plan_id
        output.show(
            f"\nThe plan is in review.\n  review      plan review {name}\n  begin       plan begin {name}\n"
            f"  change      plan edit {name} --set STEP.args.NAME=VALUE\n"
            f'  regenerate  plan regenerate {name} "FEEDBACK"\n  discard     plan cancel {name}'
        )


def rows_of(view: PlanView) -> list[str]:
    """The lines of a plan in review: steps with tool, args, dependencies and approval mark, those inside others too."""
    estimate = f", estimated {seconds(view.estimated_duration)}" if view.estimated_duration is not None else ""
    rows = ["", f"{line(view.title or view.id)} (version {view.version}{estimate})", ""]
    for number, step in enumerate(view.steps, 1):
        rows.append(f"☐ {number}. {line(step.description or step.id)}  [{step.id}]")
        rows += written_rows(step)
        rows += [f"     After: {', '.join(step.needs)}"] if step.needs else []
        rows += ["     Requires approval ⚠"] if step.requires_approval else []
    rows += [f"! {line(problem.message)}" for problem in races_among(view.steps)]
    return rows if view.steps else [*rows, "(there are no steps)"]
