"""The policy in a worker: each attempt is judged, with its arguments filled in, before anything else happens.

So is each step that is a plan or an agent, by the activity `judge_call`, before its child begins.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from plansurvive.activities.feature import Attempt, InWorker, Layer, Waits
from plansurvive.activities.llm.model import LanguageModel
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.features.policy.check import too_few
from plansurvive.features.policy.current import Current
from plansurvive.features.policy.judging import Asker, Judged
from plansurvive.features.policy.llm_judge import LONGEST, LlmJudge
from plansurvive.features.policy.model import JudgedCall, Ruling
from plansurvive.features.policy.policy_file import people_of
from plansurvive.features.policy.resolving import Shape, real_path
from plansurvive.features.policy.rule import MOST_REMEMBERED
from plansurvive.features.policy.ruling import ASKS, Rulings
from plansurvive.plans.activity_io import JUDGE_CALL, Call, CallToJudge, CheckRequest, Return
from plansurvive.plans.model import Plan, Problem, ToolSpec
from plansurvive.plans.model.parts import Part
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import StoredText


class Judge(Layer):
    """The layer around attempts: says whether they may be made."""

    def __init__(self, rulings: Rulings) -> None:
        self._rulings = rulings
        self._shapes = dict[str, Shape]()

    async def judged(self, tool: Tool, context: ToolContext, args: Mapping[str, Any]) -> Call:
        """The call, approved if the policy allows it. Raises ToolError (POLICY_DENIED, APPROVAL_REQUIRED) and Waits."""
        call, spec = context.call, tool.spec
        policy, problem = now = self._rulings.now()
        told = call.parts.get(JudgedCall.feature)
        # First what is cheap: most calls are of tools that no rule is about, or differ from all of its rules. Only then
        # what their plan says of them.
        is_open = bool(problem) or _says_more(told)
        if not is_open and (policy is None or not (selection := policy.of_tool(spec.name, _names(told))).rules):
            return call
        found = self._judged(spec, context, args)
        if not is_open and not selection.of(found):
            return call
        said = call.part(JudgedCall) if told is not None else None
        found = replace(found, asker=Asker.of(said))
        ruling, error = await self._rulings.of(
            found, said, key=call.key, approved=call.approved, again=context.again, now=now
        )
        if ruling.decide:
            context.left[Ruling.feature] = ruling
        if error is not None:
            raise error
        return call.model_copy(update={"approved": True}) if ruling.decide == "allow" else call

    def call(self, attempt: Attempt, inner: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        """What the policy has said goes into the result."""
        if (ruling := attempt.context.left.get(Ruling.feature)) is not None:
            attempt.parts[Ruling.feature] = ruling
        return inner()

    def _judged(self, spec: ToolSpec, context: ToolContext, args: Mapping[str, Any]) -> Judged:
        shape = self._shapes.get(spec.name)
        if shape is None or shape.spec is not spec:
            if len(self._shapes) >= MOST_REMEMBERED:
                self._shapes.clear()
            shape = self._shapes[spec.name] = Shape.of(spec)
        return Judged(
            spec.name,
            args,
            shape.command,
            {
                name: real_path(context.workspace.root, path)
                for name in shape.paths
                if isinstance(path := args.get(name), str)
            },
            frozenset([name for name, value in args.items() if isinstance(value, StoredText)]),
        )


def _names(told: object) -> tuple[str, ...] | None:
    """The names of a call's plan. Before it is parsed; None, so that no rule is left out, where it has another form."""
    names = told.get("names") if isinstance(told, dict) else told.names if isinstance(told, JudgedCall) else None
    return tuple(names) if isinstance(names, list) and all(isinstance(each, str) for each in names) else None


def _says_more(told: object) -> bool:
    """Whether a call asks whatever the rules say: without a policy, or as its plan wants. Before it is parsed."""
    return told is not None and (not isinstance(told, dict) or bool(told.get("asks") or told.get("wants")))


class StepJudge:
    """The activity for steps that no activity of their tool runs."""

    def __init__(self, rulings: Rulings) -> None:
        self._rulings = rulings

    @activity.defn(name=JUDGE_CALL)
    async def judge_call(self, request: CallToJudge) -> Return:
        """What the policy says. Raises ApplicationError POLICY_DENIED or APPROVAL_REQUIRED, with it as detail."""
        call = request.call
        said = call.part(JudgedCall) if JudgedCall.feature in call.parts else None
        found = Judged(request.tool, call.args, asker=Asker.of(said))
        try:
            ruling, error = await self._rulings.of(found, said, key=call.key, approved=call.approved)
        except Waits as wait:
            raise ApplicationError(f"its judge has to wait: {wait}", type=ASKS, non_retryable=True) from None
        if error is not None:
            left = {"parts": {Ruling.feature: ruling.model_dump(mode="json", exclude_defaults=True)}}
            raise ApplicationError(error.message, left, type=error.code, non_retryable=True)
        return Return(duration=0.0, parts={Ruling.feature: ruling} if ruling.decide else {})


class Worker(InWorker):
    """The policy of a worker's settings."""

    feature = "policy"

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        """Raises SettingError for a policy that is broken, or that others may write."""
        super().__init__(client, settings, fault)
        self._current = Current(settings)
        self._made: Rulings | None = None

    def layer(self, tools: Iterable[Tool]) -> Layer | None:  # noqa: ARG002
        """Judges each attempt, also by a policy that comes later."""
        return Judge(self._rulings())

    def activities(self) -> Sequence[Callable[..., object]]:
        """`judge_call`."""
        return [StepJudge(self._rulings()).judge_call]

    def problems(self, plan: Plan, workspace: str) -> Sequence[Problem]:  # noqa: ARG002
        """The steps that more people must approve than this worker's policy has for them."""
        policy, _ = self._current.now()
        return list(too_few(plan, policy.written)) if policy else ()

    def _rulings(self) -> Rulings:
        """What says what the policy says: one for the worker, whose judge asks within the layers of other features."""
        if self._made is None:
            settings, others = self.settings, [each for each in self.others.in_worker if each is not self]
            layers = list[Layer]()

            def around() -> Sequence[Layer]:
                if not layers:
                    layers.extend(layer for each in others if (layer := each.layer(())) is not None)
                return layers

            model = LanguageModel(
                settings.openai_base_url, settings.openai_api_key, settings.model,
                min(settings.llm_timeout, LONGEST), self.others.masked,
            )  # fmt: skip
            self._made = Rulings(self._current, LlmJudge(model, around))
        return self._made

    def facts(self, request: CheckRequest) -> Part | None:  # noqa: ARG002
        """Who may sign for themselves, by the policy of the moment at which the plan begins."""
        policy, _ = self._current.now()
        return people_of(policy) if policy else None


IN_WORKER = Worker
