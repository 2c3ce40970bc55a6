"""Who may start a run and decide in it, where that must be signed (PLANS_DECISIONS=signed, `Facts.must_sign`).

The core cannot verify a signature: what must be signed is refused, and a start that must be keeps no waiver, so that
its approvals are strict. A feature that verifies signatures (`features.signing`) takes the place of this class in the
runs that need it: from the beginning where the start is signed or the run is known to take only signed messages, else
once its facts say so.

Facts are known once `check_plan` has answered; of a run that continues as new from the beginning, before the first
message. Decisions that arrived before could not be checked and do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from temporalio import workflow

from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.execution.asking import void_answer
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Problem
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run import Decision, PlanStatus, Run
from plansurvive.plans.signature import M, one_object, signature_of, vouched
from plansurvive.workflows.inputs import is_carried

UNSIGNED = "unsigned start: waivers are ignored, approvals are strict"
NOBODY = "no feature of this worker verifies signatures"


@dataclass(frozen=True)
class Opening:
    """A run that has just been opened: what its start has brought, before any message adds to it."""

    run: Run
    decided: Mapping[str, Decision]
    remembered: Mapping[str, str]
    seed: int
    """The random seed then: a reset changes it."""

    @classmethod
    def of(cls, run: Run) -> Opening:
        """Raises InvalidPlan for a run that would escape the worker's check."""
        if run.status is not PlanStatus.DRAFT and not is_carried():
            text = "a run to start from must be a draft; `plan resume` makes one of an ended plan"
            raise InvalidPlan([Problem(code="PLAN_SCHEMA", field="run.status", message=text)])
        if not is_carried():
            # A start can claim any signer: only decisions that this run itself verified have one.
            run.starter = ""
            run.decisions = {name: each.unsigned() for name, each in run.decisions.items()}
        return cls(run, dict(run.decisions), dict(run.remembered), workflow.random_seed())

    def must_verify(self, arguments: Sequence[Any], kind: type[Admission]) -> bool:
        """Whether there are signatures to verify, as far as is known: the start has one, or facts ask for them."""
        return kind.verifies(self.run) or signature_of(one_object(arguments)) is not None


class Admission:
    """Where something must be signed, this one admits nothing."""

    keys_in: ClassVar[frozenset[str]] = frozenset()
    """Features whose part of the facts, if there is one, has keys with which signatures are verified."""

    def __init__(self, opening: Opening, arguments: Sequence[Any] = ()) -> None:  # noqa: ARG002
        """`arguments`: of the start, as sent; none of one that turns out to need signatures, and has none itself."""
        self.run, self.opening = opening.run, opening

    @classmethod
    def verifies(cls, run: Run) -> bool:
        """Whether the run's facts say how signatures are verified, or that they must be."""
        return run.facts.must_sign or not cls.keys_in.isdisjoint(run.facts.parts)

    def for_check(self) -> Part | None:
        """What the workers are told of the start when they are asked for facts."""
        return None

    def judge(self) -> None:
        """Apply the rule to a run whose facts have just become known."""
        if self.run.facts.must_sign:
            self.settle(NOBODY)

    async def watch(self) -> None:
        """Runs beside the workflow, as long as it does."""

    def turn(self) -> None:
        """Before a turn of the run starts anything."""

    def memo(self) -> dict[str, Any] | None:
        """The memo for continue-as-new; None: that of the start."""
        return None

    def check(self, kind: str, arguments: Sequence[Any], name: str = "") -> None:  # noqa: ARG002
        """Raises Refused for a message that must be signed, and whose signature is not good.

        `kind`: of the message, see `features.signing.model`; `name`: of the signal, if it is one. Changes nothing.
        """
        if self.run.facts.must_sign:
            raise Refused(f"only signed messages count for this plan, and {NOBODY}", "UNSIGNED")

    def take(self, kind: str, arguments: Sequence[Any], name: str = "") -> str:
        """As `check`, of a message that is about to be honoured: its signature counts no second time.

        Returns whose key has signed it: of a person, or of a page; empty: nobody's of these.
        """
        self.check(kind, arguments, name)
        return ""

    def admit(self, message: M, kind: str, arguments: Sequence[Any], name: str = "") -> M:
        """The message as it counts, once it is taken: what it says of its signer itself proves nothing."""
        return vouched(message, self.take(kind, arguments, name))

    def settle(self, why: str) -> None:
        """Void what came before the rule was known, and, unless `why` is empty, what the start has brought.

        `why`: the start does not count.
        """
        run, kept = self.run, {} if why else self.opening.decided
        for step_id in [name for name in run.decisions if run.decisions[name] != kept.get(name)]:
            del run.decisions[step_id]
            text = f"the decision on step '{step_id}' came before its signature could be checked; decide again"
            run.note(LogKind.VOID, text, workflow.now(), step_id, code="UNSIGNED")
        if why:
            self.discard("came before signatures could be checked", "UNSIGNED")
        run.remembered = {} if why else dict(self.opening.remembered)
        run.unsigned = bool(why)
        if why:
            self.be_strict(why)

    def be_strict(self, why: str) -> None:
        """Let no waiver of the run count any more."""
        run = self.run
        run.facts = run.facts.model_copy(update={"strict_approvals": True})
        run.options = run.options.model_copy(update={"approve_all": False})
        run.note(LogKind.WARNING, f"{UNSIGNED} ({why})", workflow.now(), code="UNSIGNED")

    def discard(self, why: str, code: str) -> None:
        """Discard the answers that no step has used, and what features keep of messages."""
        run, now = self.run, workflow.now()
        for step_id, state in run.steps.items():
            if state.answer is not None and not state.answer.used:
                void_answer(run, step_id, now, f"{why}; answer again", code)
        for part in run.parts.values():
            if isinstance(part, Part) and (what := part.unproven()):
                run.note(LogKind.VOID, f"{what} {why}; send again what steps still wait for", now, code=code)
