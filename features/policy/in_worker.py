"""The policy in a worker: each attempt is judged, with its arguments filled in, before anything else happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from temporalio.client import Client

from plansurvive.activities.feature import Attempt, InWorker, Layer
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.features.policy.current import UNREADABLE, Current
from plansurvive.features.policy.judging import Asker, Judged, Verdict, judge
from plansurvive.features.policy.model import JudgedCall, Ruling
from plansurvive.features.policy.policy_file import people_of
from plansurvive.features.policy.resolving import command_of, path_arguments, real_path
from plansurvive.plans.activity_io import Call, CheckRequest
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.model.parts import Part
from plansurvive.plans.text.spans import in_words
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import StoredText

DENIED = "POLICY_DENIED"
ASKS = "APPROVAL_REQUIRED"
EXPIRED = "APPROVAL_EXPIRED"


class Judge(Layer):
    """The layer around attempts: says whether they may be made."""

    def __init__(self, current: Current) -> None:
        self._current = current

    async def judged(self, tool: Tool, context: ToolContext, args: Mapping[str, Any]) -> Call:
        """The call, approved if the policy allows it. Raises ToolError POLICY_DENIED or APPROVAL_REQUIRED."""
        call, (policy, problem) = context.call, self._current.now()
        told = call.part(JudgedCall) if JudgedCall.feature in call.parts else None
        if problem:
            verdict = Verdict("ask", (), f"{UNREADABLE}: {problem}; every call asks until that is corrected")
        elif policy is not None:
            verdict = judge(policy, _judged(tool.spec, context, args, told))
        else:
            verdict = Verdict("")
        unsettled = _unsettled(verdict, context, told) if verdict.decide == "ask" else ""
        if verdict.decide:
            context.left[Ruling.feature] = Ruling(
                decide=verdict.decide,
                rules=list(verdict.rules),
                hash=policy.hash if policy else "",
                reason=(unsettled or verdict.reason)[:2_000],
            )
        if verdict.decide == "deny":
            raise ToolError(DENIED, verdict.reason)
        if unsettled:
            raise ToolError(ASKS, unsettled)
        if verdict.decide == "allow":
            return call.model_copy(update={"approved": True})
        if not verdict.decide and told and told.asks and not call.approved:
            raise ToolError(ASKS, f"{tool.spec.name} needs a person's approval with these arguments")
        return call

    async def call(self, attempt: Attempt, inner: Callable[[], Awaitable[Any]]) -> Any:
        """What the policy has said goes into the result."""
        value = await inner()
        if (ruling := attempt.context.left.get(Ruling.feature)) is not None:
            attempt.parts[Ruling.feature] = ruling
        return value


def _unsettled(verdict: Verdict, context: ToolContext, told: JudgedCall | None) -> str:
    """Why no decision of a person answers the policy; empty if one does. A call uses it up when it is first tried."""
    if told is None or not told.decided:
        return verdict.reason
    if verdict.expires is None or context.again:
        return ""
    age = (datetime.now(UTC) - max(each.time for each in told.decided)).total_seconds()
    if age <= verdict.expires:
        return ""
    return (
        f"{EXPIRED}: the decision is {in_words(age)} old, and counts for {in_words(verdict.expires)}; {verdict.reason}"
    )


def _judged(spec: ToolSpec, context: ToolContext, args: Mapping[str, Any], told: JudgedCall | None) -> Judged:
    asker = Asker(tuple(told.names), told.starter, False, told.origin) if told else None
    return Judged(
        spec.name,
        args,
        command_of(spec),
        {name: real_path(context.workspace.root, args[name]) for name in path_arguments(spec, args)},
        frozenset(name for name, value in args.items() if isinstance(value, StoredText)),
        asker,
    )


class Worker(InWorker):
    """The policy of a worker's settings."""

    feature = "policy"

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        """Raises SettingError for a policy that is broken, or that others may write."""
        super().__init__(client, settings, fault)
        self._current = Current(settings)

    def layer(self, tools: Iterable[Tool]) -> Layer | None:  # noqa: ARG002
        """Judges each attempt, also by a policy that comes later."""
        return Judge(self._current)

    def facts(self, request: CheckRequest) -> Part | None:  # noqa: ARG002
        """Who may sign for themselves, by the policy of the moment at which the plan begins."""
        policy, _ = self._current.now()
        return people_of(policy) if policy else None


IN_WORKER = Worker
