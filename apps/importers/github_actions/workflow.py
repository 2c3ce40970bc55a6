"""Imports GitHub Actions workflows: a job is a block, `needs` are its dependencies, a matrix is a `forEach`.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-syntax

The steps of a job follow each other. Those that run whatever happened (`always()`, `failure()`) are the `finally` of
their job; jobs like that are the `finally` of the plan. Steps of a `finally` run beside each other, so that each runs
even if another one fails.
"""

from __future__ import annotations

import json
import re
from typing import Any

from plansurvive.apps.importers.common.expressions import Const, Node, NotCarried, jmespath_of, roots_of
from plansurvive.apps.importers.common.names import Names, id_of
from plansurvive.apps.importers.common.plan_text import NOTE
from plansurvive.apps.importers.common.report import Location, Report
from plansurvive.apps.importers.github_actions.conditions import STATUS, condition
from plansurvive.apps.importers.github_actions.context import Job, Scope, declared_inputs
from plansurvive.apps.importers.github_actions.matrix import for_each_of
from plansurvive.apps.importers.github_actions.steps import NOTHING, Defaults, action_step, command_step
from plansurvive.apps.importers.github_actions.triggers import outputs_of, report_triggers

MAX_STEPS = 2_000
"""Most steps of one document."""
_FAILED = "status == 'failed' || status == 'partial'"
_USED = re.compile(r"\bsteps\.([A-Za-z_][\w-]*)\.outputs\b")
_UNUSED = {
    "permissions": "permissions of GitHub's token are not imported",
    "concurrency": "concurrency is not imported; a schedule has --overlap",
    "run-name": "run-name is not imported",
}


def plan_of(data: dict[str, Any], title: str, report: Report) -> dict[str, Any]:
    """The data of a plan; without steps if there is nothing to carry over."""
    given = data.get("jobs")
    jobs = {str(name): job for name, job in given.items() if isinstance(job, dict)} if isinstance(given, dict) else {}
    title = str(data.get("name") or title)[:1_000]
    names = Names()
    known = {
        name: Job(names.new(name, "job"), for_each_of(_strategy(job), (), Report()) is not None)
        for name, job in jobs.items()
    }
    triggers = data.get("on")
    scope = Scope(report, title, declared_inputs(triggers), known).with_env(data.get("env"), ("env",))
    report_triggers(triggers, report)
    for key, what in _UNUSED.items():
        if key in data:
            report.note((key,), what)
    steps: list[dict[str, Any]] = []
    last: list[dict[str, Any]] = []
    for name, job in jobs.items():
        block, is_last = _Block(name, job, scope, data.get("defaults"), ("jobs", name)).made()
        (last if is_last else steps).append(block)
    if len(jobs) > 1:
        report.note(("jobs",), "all jobs work in one workspace; on GitHub each has its own machine")
    plan: dict[str, Any] = {"title": title} if title else {}
    plan |= {"inputs": scope.inputs} if scope.inputs else {}
    plan |= {"outputs": found} if (found := outputs_of(triggers, scope)) else {}
    if last and not steps:
        steps = [dict(NOTHING)]
    return plan | {"steps": steps[:MAX_STEPS]} | ({"finally": last} if last else {})


class _Block:
    """One job on its way into a block."""

    def __init__(self, name: str, job: dict[str, Any], scope: Scope, defaults: Any, place: Location) -> None:
        self.job, self.place, self.report = job, place, scope.report
        self.owner = scope.jobs[name]
        self.before = len(self.report.entries)
        self.scope = Scope(
            scope.report, scope.title, scope.inputs, scope.jobs, self.owner.id, self.owner.is_matrix, {}, scope.env
        ).with_env(job.get("env"), (*place, "env"))
        self.outer = scope
        runs = {**_run_of({"defaults": defaults}), **_run_of(job)}
        self.defaults = Defaults(
            str(runs.get("shell") or ""), str(runs.get("working-directory") or ""), job.get("timeout-minutes")
        )
        self.names = Names(each.id for each in scope.jobs.values())
        self.steps: list[dict[str, Any]] = []
        self.last: list[dict[str, Any]] = []

    def made(self) -> tuple[dict[str, Any], bool]:
        """The step of the plan, and whether it belongs to the plan's `finally`."""
        block: dict[str, Any] = {"id": self.owner.id}
        block |= {"description": _title(self.job["name"])} if self.job.get("name") else {}
        needs = self._needs()
        condition, status = self._condition(self.job, self.place, self.outer)
        is_last = bool(status - {"success"})
        block |= {"dependsOn": needs} if needs and not is_last else {}
        block |= {"when": _after(condition, status)} if _after(condition, status) else {}
        for_each = for_each_of(_strategy(self.job), (*self.place, "strategy"), self.report)
        block |= {"forEach": for_each} if for_each else {}
        if self.job.get("uses"):
            block |= self._called()
        else:
            self._fill(block)
        if self.job.get("continue-on-error") is True:
            block["catch"] = [{"steps": [{**NOTHING, "id": "failed_all_the_same"}]}]
        self._unused()
        return self._marked(block, self.before, of_step=False), is_last

    def _needs(self) -> list[str]:
        given = self.job.get("needs")
        names = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        found = []
        for name in map(str, names):
            if name in self.outer.jobs:
                found.append(self.outer.jobs[name].id)
            else:
                self.report.loss((*self.place, "needs"), f"it needs {name}, and there is no such job", "correct needs")
        return list(dict.fromkeys(found))

    def _fill(self, block: dict[str, Any]) -> None:
        """The steps, their order, and what others get of them."""
        given = [each if isinstance(each, dict) else {} for each in _listed(self.job.get("steps"))][:MAX_STEPS]
        used = set(_USED.findall(json.dumps(self.job, default=str)))
        planned = [self._name(each, number, used) for number, each in enumerate(given)]
        for number, (each, name) in enumerate(zip(given, planned, strict=True)):
            self._step(each, name, (*self.place, "steps", number), number < len(given) - 1)
        if any(len(each["args"].get("env", {})) > 500 for each in self.steps):
            self.report.note(self.place, "it has very many environment variables")
        block["steps"] = self.steps or [dict(NOTHING)]
        block |= {"finally": self.last} if self.last else {}
        outputs = self.job.get("outputs")
        if isinstance(outputs, dict) and outputs:
            output = self._output(outputs)
            block |= {"output": output} if output else {}

    def _name(self, given: dict[str, Any], number: int, used: set[str]) -> str:
        """The id of a step, which later expressions know as well."""
        uses = str(given.get("uses") or "").partition("@")[0].rpartition("/")[2]
        wanted = str(given.get("id") or given.get("name") or uses or _first_word(given.get("run")))
        name = self.names.new(re.sub(r"\$\{\{.*?\}\}", "", wanted), f"step_{number + 1}")
        if given.get("id"):
            kind = "answer" if given.get("uses") else "outputs" if given["id"] in used else "run"
            self.scope.steps[str(given["id"])] = (kind, f"{name}_outputs" if kind == "outputs" else name)
        return name

    def _step(self, given: dict[str, Any], name: str, place: Location, has_more: bool) -> None:
        before = len(self.report.entries)
        scope = self.scope
        if given.get("uses"):
            ran = action_step(given, name, scope, place)
        elif "run" in given:
            ran = command_step(given, name, scope, self.defaults, place)
        else:
            self.report.loss(place, "a step with neither run nor uses")
            return
        when, status = self._condition(given, place, scope.with_env(given.get("env"), (*place, "env")))
        follows = self.steps if not status - {"success"} else self.last
        if follows is self.last and has_more and ran.steps:
            self.report.note(place, "it runs at the end of the job, after the steps that follow it here")
        if self.last and follows is self.last and ran.steps:  # it runs even if that one fails
            self.report.note(place, "it runs beside the one before it", "`dependsOn` if the order matters")
        for number, step in enumerate(ran.steps):
            if follows and follows is self.steps and number == 0:
                step["dependsOn"] = [follows[-1]["id"]]
            step |= {"when": _after(when, status)} if _after(when, status) else {}
            if number == 0 and given.get("name"):
                step = {"id": step["id"], "description": _title(given["name"]), **step}
            follows.append(self._marked(step, before if number == 0 else len(self.report.entries), of_step=True))

    def _condition(self, given: dict[str, Any], place: Location, scope: Scope) -> tuple[str, set[str]]:
        """The condition as JMESPath, empty if there is none, and the status functions in it."""
        text = given.get("if")
        if text is None:
            return "", set()
        place = (*place, "if")
        try:
            found = condition(
                str(text).lower() if isinstance(text, bool) else str(text), lambda parts: scope.meaning(parts, place)
            )
            return ("" if found.node == Const(True) else jmespath_of(found.node)), found.status
        except NotCarried as error:
            self.report.loss(place, f"the condition {str(text)[:200]!r}: {error}", "write it as `when`")
            return "", {each for each in STATUS if f"{each}()" in str(text)} - {"success"}

    def _output(self, outputs: dict[str, Any]) -> str:
        rows = []
        inside = {step["id"] for step in self.steps}
        outside = {"inputs", *(job.id for job in self.scope.jobs.values())}
        for name, value in outputs.items():
            place = (*self.place, "outputs", name)
            try:
                node = self.scope.node(value if isinstance(value, str) else json.dumps(value), place)
                if set(roots_of(node)) <= outside:
                    self.owner.given[str(name)] = node
                else:
                    self._require_inside(node, inside)
                    rows.append(f"{json.dumps(str(name))}: {jmespath_of(node)}")
            except NotCarried as error:
                self.report.loss(place, str(error), "add it to `output`")
        text = "{" + ", ".join(rows) + "}"
        if len(text) > 1_000:
            self.report.loss((*self.place, "outputs"), "more outputs than fit in `output`", "shorten them")
        return text if rows and len(text) <= 1_000 else ""

    def _require_inside(self, node: Node, inside: set[str]) -> None:
        if not set(roots_of(node)) <= inside:
            raise NotCarried("values of the job and others in one output")

    def _called(self) -> dict[str, Any]:
        """A job that calls another workflow: that one has to be imported as well."""
        uses = str(self.job["uses"])
        file = f"{id_of(uses.partition('@')[0].rpartition('/')[2].rpartition('.')[0], 'workflow')}.plan.yaml"
        how = f"import that file: plan import FILE --out {file}"
        self.report.loss((*self.place, "uses"), f"it calls {uses}", how)
        if self.job.get("secrets"):
            self.report.loss((*self.place, "secrets"), "secrets passed to another workflow", "see docs/security.md")
        given = self.job.get("with")
        inputs = {
            id_of(str(name)): self.scope.text(value, (*self.place, "with", name)) if isinstance(value, str) else value
            for name, value in given.items()
        } if isinstance(given, dict) else {}  # fmt: skip
        return {"tool": "plan", "args": {"file": file} | ({"inputs": inputs} if inputs else {})}

    def _unused(self) -> None:
        """What a plan has no counterpart for."""
        runs_on = json.dumps(self.job.get("runs-on") or "")
        if "windows" in runs_on or "macos" in runs_on:
            self.report.loss((*self.place, "runs-on"), f"it runs on {runs_on}", "bind it to a `queue` of such workers")
        elif "self-hosted" in runs_on:
            self.report.note((*self.place, "runs-on"), f"it runs on {runs_on}", "a `queue` binds steps to machines")
        for key, how in (
            ("container", "commands run where the worker runs"),
            ("services", "start what it needs before the plan, or in steps"),
            ("environment", "requiresApproval: true asks a person first"),
        ):
            if self.job.get(key):
                self.report.loss((*self.place, key), f"{key} of the job", how)
        for key in ("permissions", "concurrency"):
            if key in self.job:
                self.report.note((*self.place, key), _UNUSED[key])

    def _marked(self, step: dict[str, Any], before: int, *, of_step: bool) -> dict[str, Any]:
        """The step with a comment about what it lost."""
        numbers = [
            str(number)
            for number, entry in enumerate(self.report.entries[before:], before)
            if entry.kind == "loss" and of_step == (".steps[" in entry.where)
        ]
        return {NOTE: ",".join(numbers), **step} if numbers else step


def _after(when: str, status: set[str]) -> str:
    """The condition of a step that runs whatever happened, with what it says about that."""
    wanted = _FAILED if "failure" in status else "status == 'cancelled'" if "cancelled" in status else ""
    if "always" in status or not wanted:
        return when
    return f"({wanted}) && ({when})" if when else wanted


def _run_of(owner: Any) -> dict[str, Any]:
    """`defaults.run` of the workflow or of a job, without what is not set."""
    found: Any = owner
    for key in ("defaults", "run"):
        found = found.get(key) if isinstance(found, dict) else None
    return {key: value for key, value in found.items() if value} if isinstance(found, dict) else {}


def _strategy(job: dict[str, Any]) -> dict[str, Any]:
    strategy = job.get("strategy")
    return strategy if isinstance(strategy, dict) else {}


def _title(name: Any) -> str:
    return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", r"\1", str(name))[:1_000]


def _first_word(script: Any) -> str:
    found = re.match(r"\s*([A-Za-z][\w-]{0,30})", str(script or ""))
    return found[1] if found else ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
