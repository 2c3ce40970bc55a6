"""Validates a plan: reports every problem at once, each with its step, its field and how to fix it.

Checks ids, dependencies, cycles, tools and their arguments, references, expressions, constructs and inputs, at every
level of steps inside steps. The structure of the data has been checked before, by `plans.definition.parsing`. A plan
without problems of severity `error` can run.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

from plansurvive.plans.definition.arguments import KINDS
from plansurvive.plans.definition.checks.calls import reference_problems, texts_of, tool_problems, unknown_tool
from plansurvive.plans.definition.checks.constructs import construct_problems
from plansurvive.plans.definition.checks.expressions import expression_problems, output_problems, unreadable
from plansurvive.plans.definition.checks.meaning import FAILS, MeaningCheck
from plansurvive.plans.definition.checks.names import dependency_problems, id_problems, size_problem
from plansurvive.plans.definition.checks.scope import Plain, Scope
from plansurvive.plans.definition.checks.values import Values
from plansurvive.plans.definition.dependencies import Mention, find_cycles, mentions
from plansurvive.plans.definition.language import PLAIN, Language
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.parsing import MAX_FOUND
from plansurvive.plans.definition.plain_words import shown
from plansurvive.plans.definition.scopes import Body, CallOf, bodies, call_names, plan_bodies, undo_names, walk
from plansurvive.plans.errors import BadExpression
from plansurvive.plans.expressions.references import Reference, in_text
from plansurvive.plans.files.owned import owned_problems
from plansurvive.plans.model import Input, Plan, Problem, Step, ToolSpec


def cycle_problems(steps: list[Step], scope: Scope) -> list[Problem]:
    """One problem per cycle, naming its steps, plus one per reference that is part of it.

    Steps that share an id, a problem of its own, count as one with the dependencies of all of them.
    """
    same: dict[str, list[Step]] = {}
    for step in steps:
        same.setdefault(step.id, []).append(step)
    needs = {
        name: [other for step in each for other in _needs(step) if other in same and other != name]
        for name, each in same.items()
    }
    found: list[Problem] = []
    for ring in find_cycles(needs):
        shown = " -> ".join(ring if len(ring) <= 12 else [*ring[:10], "...", ring[-1]])
        text = f"Plan contains circular dependencies: {shown} ({len(ring) - 1} steps); remove one of these dependencies"
        place = f"{scope.before}{ring[0]}"
        found.append(Problem(code="PLAN_CYCLE", step_id=place, field="dependsOn", message=text))
        for name, needed in pairwise(ring):
            if not any(needed in step.depends_on for step in same[name]):
                text = f"the value of '{needed}' cannot be used here: '{needed}' itself waits for '{name}'"
                at = next(each for step in same[name] for each in _mentions(step, scope.before) if each.root == needed)
                found.append(Problem(code="BAD_REFERENCE", step_id=at.path, field=at.field, message=text))
    return found


def _needs(step: Step) -> list[str]:
    return list(dict.fromkeys([*step.depends_on, *[each.root for each in _mentions(step)]]))


def _mentions(step: Step, before: str = "") -> list[Mention]:
    found: list[Mention] = []
    try:
        for each in mentions(step, before):
            found.append(each)  # noqa: PERF402 - what comes before an expression that does not parse counts
    except BadExpression:
        pass  # reported already, with its place
    return found


MAX_PROBLEMS = 200
"""At most this many problems go into history; `plan check` shows all of them."""


def problems(
    plan: Plan, tools: Mapping[str, ToolSpec], elsewhere: Container[str] = (), untyped: Container[str] = (),
    language: Language = PLAIN,
) -> list[Problem]:  # fmt: skip
    """All problems of a plan, in step order; those of the plan as a whole come last. After MAX_FOUND the check stops.

    Tools of the steps whose paths are in `elsewhere` are not checked: they run on workers of another task queue.
    `untyped`: inputs whose values, and so their types, are known only when the plan starts.
    """
    too_large = size_problem(plan)
    return [too_large] if too_large else _Check(plan, tools, elsewhere, untyped, language).run()


class _Full(Exception):
    """There are more than MAX_FOUND errors."""


class _Check:
    """One check of a plan."""

    def __init__(
        self, plan: Plan, tools: Mapping[str, ToolSpec], elsewhere: Container[str], untyped: Container[str],
        language: Language,
    ) -> None:  # fmt: skip
        self._plan, self._tools, self._elsewhere, self._language = plan, tools, elsewhere, language
        self._hints, self._inputs, self._plain = Hints(), set(plan.inputs), Plain(plan)
        self._meaning = MeaningCheck(Values(plan, tools, untyped, language), self._hints)
        self._found: list[Problem] = []
        self._errors = self._checked = 0

    def run(self) -> list[Problem]:
        """All problems."""
        closes = self._plan.finally_ is not None
        scopes = [
            Scope(body.steps, self._plain, body=body, before=f"{body.part}." if body.part else "")
            for body in plan_bodies(self._plan)
        ]
        try:
            for scope, body in zip(scopes, plan_bodies(self._plan), strict=True):
                self._add(id_problems(body.steps, scope, closes))
                self._body(body.steps, scope)
        except _Full:
            rest = sum(1 for _ in walk(self._plan)) - self._checked
            return [*self._found, _more(f"the other {rest} steps were not checked; fix these problems first")]
        for scope, body in zip(scopes, plan_bodies(self._plan), strict=True):
            self._found += cycle_problems(body.steps, scope)
        ended = [*output_problems(self._plan, self._hints, self._language), *self._meaning.of_outputs(self._plan)]
        whole = [*_defaults(self._plan), *owned_problems(self._plan)]
        return [*self._found, *ended, *whole]

    def body(self, steps: Sequence[Step], around: Scope, before: str, variables: frozenset[str]) -> list[Problem]:
        """All problems of one body."""
        body = Body("", "", list(steps), variables, frozenset())
        scope = Scope(steps, self._plain, body=body, around=around, before=before)
        with suppress(_Full):
            self._add(id_problems(steps, scope))
            self._body(steps, scope)
            self._add(cycle_problems(body.steps, scope))
        return self._found

    def _body(self, steps: Sequence[Step], scope: Scope) -> None:
        for step in steps:
            self._checked += 1
            self._step(step, scope)
            if self._errors > MAX_FOUND:
                raise _Full

    def _step(self, step: Step, scope: Scope) -> None:
        here = f"{scope.before}{step.id}" not in self._elsewhere
        self._add(dependency_problems(step, scope, self._hints))
        for call in calls_of(step, scope.before):
            texts = texts_of(call)
            if here:
                self._add(tool_problems(call, texts, self._tools, scope, self._hints, self._language))
                for check in self._language.calls:
                    self._add(check(call, self._tools, self._language))
            if texts:
                spec = self._tools.get(call.tool) if here else None
                paths = partial(self._path, step=step, scope=scope, path=call.path, spec=spec)
                self._add(
                    reference_problems(call, texts, scope, self._inputs, self._hints, "args", paths, self._language)
                )
        if here:
            for of_step in self._language.checks:
                self._add(of_step(step, self._tools))
        if not _is_plain(step):
            self._add(expression_problems(step, scope, self._inputs, self._hints, self._language))
            self._add(self._meaning.of_step(step, scope))
            self._add(construct_problems(step, scope, self._hints))
            self._inside(step, scope)

    def _path(
        self, reference: Reference, field: str, *, step: Step, scope: Scope, path: str, spec: ToolSpec | None
    ) -> Iterator[Problem]:
        return self._meaning.of_reference(reference, step, scope, path, field, spec)

    def _inside(self, step: Step, scope: Scope) -> None:
        found = [(body, scope.of(step, body)) for body in bodies(step)]
        together = [each for body, _ in found if not body.part for each in body.steps]
        if together:  # the alternatives of a switch share their names
            self._add(id_problems(together, next(inner for body, inner in found if not body.part)))
        for body, inner in found:
            if body.part:
                self._add(id_problems(body.steps, inner))
            self._body(body.steps, inner)
            self._add(cycle_problems(body.steps, inner))

    def _add(self, found: Sequence[Problem] | Iterator[Problem]) -> None:
        for problem in found:
            self._found.append(problem)
            self._errors += problem.severity == "error"


def calls_of(step: Step, before: str = "") -> Iterator[CallOf]:
    """The calls of tools that a step makes itself: its own, and that of its `undo`."""
    path = f"{before}{step.id}"
    if step.tool:
        yield CallOf(path, step.id, step.tool, step.args, call_names(step))
    if step.undo is not None and step.undo.tool is not None:
        yield CallOf(path, step.id, step.undo.tool, step.undo.args, undo_names(step), "undo.")


def calls_to(plan: Plan, tool: str) -> Iterator[CallOf]:
    """The calls of one tool that the steps of a plan make themselves."""
    for path, step in walk(plan):
        if step.tool == tool or step.undo is not None:
            yield from (call for call in calls_of(step, path[: -len(step.id)]) if call.tool == tool)


def named_tool_problems(
    plan: Plan, tools: Collection[str], language: Language, elsewhere: Container[str] = ()
) -> Iterator[Problem]:
    """Names of tools in arguments that are no tools: an agent would work without them.

    Not among `problems`: those are also asked of the tools that a run knows, which are the ones that its steps call.
    """
    named, hints = {each.name: each.tool_args for each in language.tools if each.tool_args}, Hints()
    for path, step in walk(plan):
        if step.tool in named and path not in elsewhere:
            for argument in named[step.tool]:
                given = step.args.get(argument)
                for name in given if isinstance(given, list) else ():
                    if isinstance(name, str) and name not in tools and not in_text(name):
                        text = unknown_tool(name[:200], tools, hints)
                        yield Problem(code="UNKNOWN_TOOL", step_id=path, field=f"args.{argument}", message=text)


def _is_plain(step: Step) -> bool:
    """Whether a step is one call and nothing else, as most are."""
    return (
        step.when is None and step.steps is None and step.switch is None and step.for_each is None
        and step.repeat is None and step.catch is None and step.finally_ is None and step.undo is None
        and step.output is None
    )  # fmt: skip


def call_problems(
    step: Step, tools: Mapping[str, ToolSpec], usable: set[str], inputs: set[str], language: Language
) -> list[Problem]:
    """All problems of one step's call, given that it may reference the values of the `usable` steps."""
    hints = Hints()
    scope = Scope([step], Plain(), body=Body("", "", [], frozenset(usable), frozenset()))
    call = CallOf(step.id, step.id, step.tool, step.args, call_names(step))
    texts = texts_of(call)
    return [
        *tool_problems(call, texts, tools, scope, hints, language),
        *reference_problems(call, texts, scope, inputs, hints, language=language),
    ]


def body_problems(
    plan: Plan, tools: Mapping[str, ToolSpec], steps: Sequence[Step], before: str, around: Sequence[Step],
    variables: Collection[str], language: Language,
) -> list[Problem]:  # fmt: skip
    """All problems of the steps of one body, and of those inside them, that stand at the path `before` of a run.

    `around`: the steps further out whose values they may use; `variables`: the other names that mean something there.
    """
    check = _Check(plan, tools, (), (), language)
    return check.body(steps, Scope(around, Plain(), before=before), before, frozenset(variables))


def errors(found: list[Problem]) -> list[Problem]:
    """The problems that prevent a plan from running (severity `error`)."""
    return [problem for problem in found if problem.severity == "error"]


_CERTAIN = (FAILS, "INVALID_ARGS")
"""Codes of warnings that are errors before a plan starts."""


def certain(found: list[Problem]) -> list[Problem]:
    """The problems, as errors also those for which a step fails for certain, or a schema means nothing.

    For the check before a plan starts alone: `problems` is also asked in workflows, where an edit of a plan that runs
    already was taken with them, and must be again when its history is replayed.
    """
    return [each.model_copy(update={"severity": "error"}) if each.code in _CERTAIN else each for each in found]


def bounded(found: list[Problem]) -> list[Problem]:
    """At most MAX_PROBLEMS, errors first, plus one that counts the rest: history size is limited."""
    if len(found) <= MAX_PROBLEMS:
        return found
    kept = sorted(found, key=lambda problem: problem.severity != "error")[:MAX_PROBLEMS]
    return [*kept, _more(f"{len(found) - MAX_PROBLEMS} more problems are not shown; `plan check` shows more")]


def _more(text: str) -> Problem:
    return Problem(code="MORE_PROBLEMS", message=text)


def input_values(
    plan: Plan, given: Mapping[str, Any], *, in_file: bool = False
) -> tuple[dict[str, Any], list[Problem]]:
    """The plan's input values with defaults applied, and the problems of the values given.

    `in_file`: they are written in a plan file, and are no options of a command.
    """
    values: dict[str, Any] = {}
    hints = Hints()
    found = [
        Problem(
            code="UNKNOWN_INPUT",
            field=f"inputs.{name}",
            message=f"the plan has no input '{name}'{hints.question(name, plan.inputs) or _inputs_of(plan)}",
        )
        for name in given
        if name not in plan.inputs
    ]
    for name, declared in plan.inputs.items():
        value = given.get(name, declared.default)
        if value is None:
            how = "" if in_file else f"; give it with --input {name}={_EXAMPLES[declared.type]}"
            text = f"the input '{name}'{_about(declared)} is required{how}"
            found.append(Problem(code="MISSING_INPUT", field=f"inputs.{name}", message=text))
        elif name in given and not has_type(value, declared):
            what = f"the input '{name}'{_about(declared)} should be {KINDS[declared.type]}; it is {shown(value)}"
            text = f"{what}; pass another{'' if in_file else f', such as --input {name}={_EXAMPLES[declared.type]}'}"
            found.append(Problem(code="BAD_INPUT", field=f"inputs.{name}", message=text))
        values[name] = value
    return values, found


def _inputs_of(plan: Plan) -> str:
    named = ", ".join(list(plan.inputs)[:12])
    return f"; its inputs are {named}" if named else "; it has none: leave it out, or declare it under `inputs`"


_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}

_EXAMPLES = {
    "string": "VALUE",
    "integer": "3",
    "number": "1.5",
    "boolean": "true",
    "array": """'["a", "b"]'""",
    "object": """'{"a": 1}'""",
}


def _about(declared: Input) -> str:
    return f" ({shown(declared.description)[1:-1]})" if declared.description else ""


def _defaults(plan: Plan) -> Iterator[Problem]:
    for name, declared in plan.inputs.items():
        if declared.default is not None and not has_type(declared.default, declared):
            text = f"should be {KINDS[declared.type]}, the type of the input; it is {shown(declared.default)}"
            yield Problem(code="BAD_INPUT", field=f"inputs.{name}.default", message=text)


def has_type(value: Any, declared: Input) -> bool:
    """Whether a value is of the declared type of an input; true and false are no numbers."""
    if declared.type in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, _KINDS[declared.type])


def condition_problems(plan: Plan) -> list[Problem]:
    """Expressions that do not parse. The dependencies of their steps are unknown until they do."""
    return [problem for path, step in walk(plan) for problem in unreadable(step, path[: -len(step.id)])]
