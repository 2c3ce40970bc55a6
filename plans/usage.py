"""LLM usage: what a run has spent on requests, and whether it may send another one.

`Usage` is additive; a `Ledger` keeps totals by step and by model for one run, those of its agents included: each agent
has an `Account` with what it reported last. An agent asks its plan before each request, and features say whether it may
be sent (`Rules.permit`): a `Permission`. Nothing here reads a clock: the seconds spent are passed in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer

from plansurvive.plans.model import Value
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line

Verdict = Literal["ok", "warn", "wait", "ask", "stop"]
"""Of a request: it is sent; it is, and the log warns; others that are under way end first; a person decides; never."""
OVERRUN_CODE = "LLM_BUDGET"
"""Error code of a step or run that ended because a request that it needs was refused."""
ANSWER_TOKENS = 4_096
"""Tokens expected of an answer, before one has been seen."""
MAX_REPORTED = 10**12
"""Far above what any run can spend: larger numbers in a message are no report."""
MAX_MODELS = 50
"""Models that one run reports by name."""
Costs = Annotated[
    dict[Annotated[str, Field(max_length=20)], Annotated[float, Field(ge=0, le=MAX_REPORTED, allow_inf_nan=False)]],
    Field(max_length=20),
]
"""Amounts by currency."""


class Usage(Value):
    """Tokens and number of one or more LLM requests."""

    calls: int = Field(default=0, ge=0, description="Requests the endpoint answered.")
    prompt_tokens: int = Field(default=0, ge=0, description="Tokens of the messages.")
    completion_tokens: int = Field(default=0, ge=0, description="Tokens of the answers.")
    total_tokens: int = Field(default=0, ge=0, description="All tokens, as counted by the endpoint.")
    cost: Costs = Field(default_factory=dict, description="By currency, what coding agents say that it has cost.")

    @model_serializer(mode="wrap")
    def _without_no_cost(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out `cost` where none is known: workers of 1.0.0 do not know the field."""
        found: dict[str, Any] = whole(self)
        return found if found.get("cost") else {name: each for name, each in found.items() if name != "cost"}

    @property
    def highest_cost(self) -> tuple[float, str]:
        """The largest amount of one currency, and that currency; 0 where no cost is known."""
        return max(((amount, currency) for currency, amount in self.cost.items()), default=(0.0, ""))

    @property
    def costs(self) -> str:
        """`0.02 USD`, for people; empty if no cost is known."""
        return ", ".join(f"{amount:,.10g} {line(currency)}".rstrip() for currency, amount in sorted(self.cost.items()))

    def plus(self, other: Usage) -> Usage:
        """The sum of both."""
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cost=_added(self.cost, other.cost, 1),
        )

    def in_words(self, unit: str = "") -> str:
        """`3,000 tokens in 10 LLM requests`, for people; `unit`: what follows the number of tokens. With known costs,
        these as well.
        """
        cost = f", {self.costs}" if self.cost else ""
        return f"{self.total_tokens:,}{unit} in {number_of(self.calls, 'LLM request')}{cost}"

    def minus(self, other: Usage) -> Usage:
        """What remains without `other`; nothing is negative."""
        return Usage(
            calls=max(0, self.calls - other.calls),
            prompt_tokens=max(0, self.prompt_tokens - other.prompt_tokens),
            completion_tokens=max(0, self.completion_tokens - other.completion_tokens),
            total_tokens=max(0, self.total_tokens - other.total_tokens),
            cost=_added(self.cost, other.cost, -1),
        )


def _added(costs: Mapping[str, float], others: Mapping[str, float], sign: int) -> dict[str, float]:
    """The sum, or with -1 what remains: nothing is negative, and what is nothing is left out."""
    sums = {name: round(costs.get(name, 0.0) + sign * others.get(name, 0.0), 9) for name in (*costs, *others)}
    return {name: amount for name, amount in sums.items() if amount > 0}


def _plausible(usage: Usage) -> Usage:
    if max(usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) > MAX_REPORTED:
        raise ValueError(f"no run spends more than {MAX_REPORTED:,}")
    return usage


class Spent(Value):
    """What a run that works for a step has spent since it began: each report holds all of it, so none counts twice."""

    by_model: dict[Annotated[str, Field(max_length=200)], Annotated[Usage, AfterValidator(_plausible)]] = Field(
        default_factory=dict, max_length=MAX_MODELS
    )
    seconds: float = Field(default=0.0, ge=0, le=MAX_REPORTED, allow_inf_nan=False, description="Time of its requests.")
    largest: int = Field(default=0, ge=0, le=MAX_REPORTED, description="Tokens of its largest request.")
    longest: float = Field(default=0.0, ge=0, le=MAX_REPORTED, allow_inf_nan=False, description="Of the longest one.")

    @property
    def total(self) -> Usage:
        """The sum over all models."""
        return _sum(self.by_model.values())

    def since(self, earlier: Spent) -> Spent:
        """What was spent after `earlier`, with the largest and the longest request of all."""
        rest = {name: usage.minus(earlier.by_model.get(name, Usage())) for name, usage in self.by_model.items()}
        return self.model_copy(
            update={
                "by_model": {name: usage for name, usage in rest.items() if usage != Usage()},
                "seconds": max(0.0, round(self.seconds - earlier.seconds, 3)),
            }
        )


class Account(Value):
    """What the plan knows of the agent that works on a step: what it has spent, and the request it may send."""

    child: str = Field(description="Workflow id of the agent or child plan.")
    is_plan: bool = Field(default=False, description="A child plan, which may have several requests under way.")
    asks: bool = Field(default=False, description="It asks first: it had a budget when it started, or got one later.")
    spent: Spent = Field(default_factory=Spent, description="As last reported.")
    finished: int = Field(default=0, description="Number of its last request that was answered or failed.")
    granted: int = Field(default=0, description="Number of the last request it may send.")
    waiting: int = Field(default=0, description="Number of the request it asks for; 0: it asks for none.")
    since: int = Field(default=0, description="Sequence number of its question: who asked first is answered first.")
    estimate: int = Field(default=0, description="Tokens expected of the request asked for or granted last.")
    told: int = Field(default=0, description="All its tool calls up to this number are recorded.")
    called: dict[str, int] = Field(default_factory=dict, description="Its recorded tool calls, by tool.")

    @property
    def open(self) -> int:
        """Number of requests that were granted whose end it has not reported; of an agent, at most one."""
        return max(0, self.granted - self.finished)

    @property
    def is_open(self) -> bool:
        """Whether a request was granted whose end it has not reported."""
        return self.granted > self.finished


class Ledger(Value):
    """Usage of one run by step and by model. Requests not made for a step (planning) are under the empty step id."""

    by_step: dict[str, Usage] = Field(default_factory=dict)
    by_model: dict[str, Usage] = Field(default_factory=dict)
    largest: int = Field(default=0, description="Tokens of the largest request.")
    longest: float = Field(default=0.0, description="Seconds of the longest request.")
    agents: int = Field(default=0, description="Requests of agents, which the plan's own number does not count.")
    open: dict[str, int] = Field(default_factory=dict, description="The plan's own requests under way, with estimates.")
    accounts: dict[str, Account] = Field(default_factory=dict, description="By step, the account of its agent.")

    @property
    def total(self) -> Usage:
        """Usage of the whole run."""
        return _sum(self.by_step.values())

    def plus(self, usage: Usage, *, model: str, step_id: str = "", seconds: float = 0.0) -> Ledger:
        """A new ledger with the usage of one request added; `seconds`: how long it took."""
        return self.added(usage, model, step_id).model_copy(
            update={"largest": max(self.largest, usage.total_tokens), "longest": max(self.longest, seconds)}
        )

    def opened(self, key: str, estimate: int) -> Ledger:
        """A new ledger with one of the plan's own requests under way."""
        return self.model_copy(update={"open": {**self.open, key: max(estimate, 0)}})

    def closed(self, key: str) -> Ledger:
        """A new ledger in which that request has ended."""
        return self.model_copy(update={"open": {name: size for name, size in self.open.items() if name != key}})

    def account(self, step_id: str, account: Account | None) -> Ledger:
        """A new ledger with the account of a step's agent opened, changed, or (None) closed; its usage remains."""
        rest = {name: each for name, each in self.accounts.items() if name != step_id}
        return self.model_copy(update={"accounts": rest if account is None else {**rest, step_id: account}})

    def reported(self, step_id: str, spent: Spent) -> Ledger:
        """A new ledger in which `spent` replaces what the step's agent reported before."""
        account, ledger = self.accounts[step_id], self
        for model, usage in account.spent.by_model.items():
            ledger = ledger._taken_back(usage, model, step_id)
        for model, usage in spent.by_model.items():
            ledger = ledger.added(usage, model, step_id)
        return ledger.account(step_id, account.model_copy(update={"spent": spent})).model_copy(
            update={
                "agents": max(0, self.agents - account.spent.total.calls) + spent.total.calls,
                "largest": max(self.largest, spent.largest),
                "longest": max(self.longest, spent.longest),
            }
        )

    def added(self, usage: Usage, model: str, step_id: str) -> Ledger:
        """A new ledger with the usage of any number of requests added."""
        steps = self.by_step | {step_id: self.by_step.get(step_id, Usage()).plus(usage)}
        models = self.by_model | {model: self.by_model.get(model, Usage()).plus(usage)}
        return self.model_copy(update={"by_step": steps, "by_model": models})

    def _taken_back(self, usage: Usage, model: str, step_id: str) -> Ledger:
        steps = self.by_step | {step_id: self.by_step.get(step_id, Usage()).minus(usage)}
        models = self.by_model | {model: self.by_model.get(model, Usage()).minus(usage)}
        return self.model_copy(
            update={
                "by_step": {name: each for name, each in steps.items() if each != Usage()},
                "by_model": {name: each for name, each in models.items() if each != Usage()},
            }
        )

    def to_json(self, seconds: float) -> dict[str, Any]:
        """The usage in total, and the tokens by step (planning has the id "") and by model; `seconds` it took.

        Costs are there if any are known.
        """
        by_step = {name: usage.total_tokens for name, usage in self.by_step.items()}
        by_model = {name: usage.total_tokens for name, usage in self.by_model.items()}
        found = {
            **self.total.model_dump(mode="json"), "seconds": round(seconds, 3), "byStep": by_step, "byModel": by_model
        }  # fmt: skip
        costs = {"costByStep": self.by_step, "costByModel": self.by_model}
        priced = {key: {name: each.cost for name, each in shares.items() if each.cost} for key, shares in costs.items()}
        return found | {key: shares for key, shares in priced.items() if shares}

    def spent(self, seconds: float) -> Spent:
        """All of it, by model, as a run reports it to the plan that it works for; `seconds` it took."""
        by_model = dict[str, Usage]()
        for model, usage in self.by_model.items():
            name = model[:200] if len(by_model) < MAX_MODELS - 1 else ""
            by_model[name] = by_model.get(name, Usage()).plus(usage)
        return Spent(by_model=by_model, seconds=round(seconds, 3), largest=self.largest, longest=self.longest)

    def position(self, own_calls: int, seconds: float) -> Position:
        """What is spent and under way. `own_calls`: requests of the plan itself, those under way included."""
        total, asking = self.total, [each for each in self.accounts.values() if each.is_open]
        calls = max(total.calls, own_calls + self.agents)
        sizes = [*self.open.values(), *(each.estimate for each in asking for _ in range(each.open))]
        return Position(
            spent=total.model_copy(update={"calls": calls}),
            seconds=seconds,
            uncounted=sum(each.open for each in asking),
            sizes=[max(size, self.largest) for size in sizes],
            longest=self.longest,
        )


class Position(Value):
    """What is spent, and which requests are under way."""

    spent: Usage = Field(default_factory=Usage)
    seconds: float = 0.0
    uncounted: int = Field(default=0, description="Requests under way that `spent.calls` does not count.")
    sizes: list[int] = Field(default_factory=list, description="Tokens expected of each request under way.")
    longest: float = Field(default=0.0, description="Seconds of the longest request so far; 0: none has ended.")


class Permission(Value):
    """Whether the next LLM request may be sent, and why not."""

    verdict: Verdict = "ok"
    reason: str = Field(default="", description="Which limit, and how much of it is spent; empty if ok.")
    remedy: str = Field(default="", description="What continues the plan once the request is refused: a command.")

    @property
    def refusal(self) -> str:
        """Why a request is not sent, and what continues the plan."""
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason


def estimate(characters: int) -> int:
    """Tokens expected of a request whose prompt has so many characters: three to a token, so rather too many."""
    return characters // 3 + ANSWER_TOKENS


def _sum(usages: Collection[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total = total.plus(usage)
    return total
