"""Replays one plan or agent: with the recorded answers, which checks this version; then with the LLM asked anew."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from temporalio.converter import DataConverter

from plansurvive.activities.lifecycle.ask_llm import AskLlm
from plansurvive.activities.llm.model import LanguageModel
from plansurvive.apps.evaluation.agents import BY_ITSELF, AgentPart
from plansurvive.apps.evaluation.answers import ASK, Answers, Decisions, data_of, facts_of
from plansurvive.apps.evaluation.asking import Anew, FromRecord, Spending
from plansurvive.apps.evaluation.instance import PlayFailed
from plansurvive.apps.evaluation.passing_store import PassingStore
from plansurvive.apps.evaluation.plans import PlanPart, is_drafted
from plansurvive.apps.evaluation.played import Asked, Played, asked, of_record
from plansurvive.apps.evaluation.record import AGENT, PLAN, Record
from plansurvive.apps.evaluation.report import Replayed, compared
from plansurvive.apps.evaluation.stage import Ask, Stage, Stopped
from plansurvive.client.ids import plan_id
from plansurvive.client.prices import CostOf, unpriced
from plansurvive.features.worker_features import answer_kinds, composers
from plansurvive.plans.errors import PlanError
from plansurvive.plans.llm.endpoint import CONTEXT_TOKENS
from plansurvive.plans.llm.prompt_set import PromptSet
from plansurvive.runtime.storage import StorageError
from plansurvive.runtime.value_store import INLINE_BYTES, ValueStore

CORRECTION = "correction"


class NothingToReplay(PlanError):
    """The run asked no LLM."""

    code = "NOTHING_TO_REPLAY"


@dataclass(frozen=True)
class Asking:
    """How to ask the LLM anew."""

    model: LanguageModel
    prompts: PromptSet = field(default_factory=PromptSet)
    context_tokens: int = CONTEXT_TOKENS
    inline_bytes: int = INLINE_BYTES


@dataclass
class Play:
    """The replay of one record."""

    converter: DataConverter
    """Of the client that the record was read with: its storage is read, never written."""
    record: Record
    cost_of: CostOf = unpriced
    goes_on: bool = False
    """Whether to go on after a call that the record has no answer to."""
    parent: str = ""

    def __post_init__(self) -> None:
        if self.record.kind not in (AGENT, PLAN):
            raise NothingToReplay(f"'{self.record.workflow_id}' is neither a plan nor an agent")
        self._tools = facts_of(self.record).tools
        self._was = of_record(self.record, self._tools)
        self._decisions, self._rest = Decisions(), list[int]()
        if self.record.kind == PLAN:
            self._was.calls = []  # the steps of a plan ask no LLM: what they gave follows from the plan

    @property
    def name(self) -> str:
        """The id as people use it."""
        return plan_id(self.record.workflow_id)

    @property
    def asks(self) -> bool:
        """Whether the run asked an LLM at all."""
        return bool(self.record.of(ASK))

    async def check(self) -> Replayed:
        """Play the recorded answers: is what this version asks and does the same?"""
        error = ""
        try:
            now = await self._play(FromRecord(self.record), is_first=True)
        except PlayFailed as failed:
            now, error = Played(stopped=failed.message), f"{failed.code}: {failed.message}"
        self._was.plan, self._was.problems = now.plan, now.problems
        self._was.missing = now.missing  # of a run that was stopped: a call that it had not made yet
        driven = len(now.requests)
        if self.record.kind == PLAN:  # what a running plan asked is not played: it stays as it was recorded
            self._rest = list(range(driven, len(self._was.requests)))
            now.requests += self._was.requests[driven:]
        check = compared(self._was, now, self.cost_of, is_check=True, was_stopped=self._was_stopped)
        kind = "agent" if self.record.kind == AGENT else "plan"
        return Replayed.model_validate(
            {"id": self.name, "kind": kind, "parent": self.parent, "check": check, "error": error}
        )

    async def anew(self, found: Replayed, how: Asking, spending: Spending) -> Replayed:
        """Add the replay with the LLM asked anew; `found`: the check. A failure becomes `error`."""
        if found.error:
            return found
        most = len(self.record.of(ASK)) if self._was_stopped and self.record.kind == AGENT else None
        llm = AskLlm(
            how.model, self._values(how), self._tools, context_tokens=how.context_tokens, prompts=how.prompts,
            kinds=answer_kinds(), composers=composers(),
        )  # fmt: skip
        ask = Anew(llm, spending, self.converter, most)
        try:
            now = await self._play(ask, is_first=False)
            try:
                now.requests += [await self._again(ask, number) for number in self._rest if self._is_first(number)]
            except Stopped as stop:
                now.stopped = now.stopped or str(stop)
        except PlanError as error:
            return found.model_copy(update={"error": f"{error.code}: {error.message}"})
        told = compared(self._was, now, self.cost_of, is_check=False, was_stopped=self._was_stopped)
        return found.model_copy(update={"anew": told})

    @property
    def _was_stopped(self) -> bool:
        """Whether the recorded run did not end by itself, or has not ended."""
        return self.record.kind == AGENT and (not self.record.has_ended or self._was.end not in BY_ITSELF)

    async def _play(self, ask: Ask, *, is_first: bool) -> Played:
        if self.record.kind == PLAN and not is_drafted(self.record):
            return Played()
        part = (
            PlanPart(self.record)
            if self.record.kind == PLAN
            else AgentPart(self.record, self._decisions, is_first=is_first, goes_on=self.goes_on)
        )
        answers = Answers(self.record, self._tools)
        return await Stage(self.record, self.converter, answers, ask, part).play()

    async def _again(self, ask: Ask, number: int) -> Asked:
        """Ask a request of a running plan as it was asked then: what to do about a failed step, a revision."""
        request = data_of(self.record.of(ASK)[number].input)
        reply = await ask(request if isinstance(request, dict) else {}, number + 1)
        one = asked(request, reply.result, reply.failure, reply.seconds)
        return replace(one, question=self._was.requests[number].question)

    def _is_first(self, number: int) -> bool:
        """Whether a request is no correction of an answer that was of no use."""
        return self._was.requests[number].purpose != CORRECTION

    def _values(self, how: Asking) -> ValueStore:
        external = self.converter.external_storage
        if external is None:
            raise StorageError("this client has no external storage; connect with runtime.connect.reach")
        return ValueStore(PassingStore(external.drivers[0]), how.inline_bytes)
