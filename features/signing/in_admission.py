"""Signed starts and decisions: applies the rule of the worker's facts (PLANS_DECISIONS=signed) to a run.

Where the worker asks for none and its policy has keys of people, a signature that names one of them must be good, and
then proves who has sent it; what has none counts as ever.

The rule is known once `check_plan` has answered. A start without a good signature keeps no waiver: its approvals are
strict. A run that continues as new is trusted as before, and a child agent as its parent: both are started by this
program.

Messages are signed for the run's nonce, the random seed of its first run, which the memo shows to whoever decides. The
server takes a reset for another run with another seed, the same on every replay. Then there is a new nonce; what was
decided and not yet used counts no more, and the run's waivers neither: they were given for one run of the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue

from plansurvive.features.policy.model import People
from plansurvive.features.signing import verification
from plansurvive.features.signing.model import (
    ADDED,
    NONCE,
    SCHEDULE,
    START,
    Honoured,
    SignedStart,
    SigningFacts,
    schedule_of,
    signed_bytes,
)
from plansurvive.plans.errors import Refused
from plansurvive.plans.log import LogKind
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run import DONE, Run, Status
from plansurvive.plans.signature import ABOVE, SEED_OF_START, Signature, one_object, signature_of
from plansurvive.workflows import admission
from plansurvive.workflows.admission import Opening
from plansurvive.workflows.inputs import is_carried

RESET = "the run was reset"


class Admission(admission.Admission):
    """Verifies with the public key of the worker that the run was begun with."""

    keys_in = frozenset({People.feature})
    """Also where only people sign, each with a key of their own."""

    def __init__(self, opening: Opening, arguments: Sequence[Any] = ()) -> None:
        """Made when the run is opened, or later: see `workflows.admission`."""
        super().__init__(opening, arguments)
        self._signature, self._content = _proof_of(arguments)
        if not is_carried():
            # Whoever wrote it: its nonce may be known to have been signed for.
            self.run.parts.pop(Honoured.feature, None)
        seed = workflow.random_seed()
        self._nonce, self._is_reset = _nonce(seed), False
        """Until the facts are known; from then on it is in the run."""
        self._was_reset = asyncio.Event()
        workflow.register_random_seed_callback(self._reset)
        # No callback tells of a reset before this: neither of one to the first task, nor of one before the facts.
        began_with = workflow.extern_functions().get(SEED_OF_START, lambda: opening.seed)
        if began_with() != seed:
            self._reset(seed)

    @property
    def _facts(self) -> SigningFacts:
        """Those of the run."""
        return self.run.facts.known_part(SigningFacts) or SigningFacts()

    @property
    def _key(self) -> str:
        return self._facts.key

    @property
    def _verifies(self) -> bool:
        return bool(self._key) or _people(self.run) is not None

    @property
    def _honoured(self) -> Honoured:
        return self.run.part(Honoured)

    def _reset(self, seed: int) -> None:
        """Note that the run was reset. Called outside the workflow's loop: nothing of the workflow can be asked here.

        A reset may be all that the task brings, and the SDK looks at conditions only after something else: so the
        event.
        """
        self._nonce, self._is_reset = _nonce(seed), True
        if self._verifies:
            self._honoured.begin(self._nonce, reset=True)
        self._was_reset.set()

    def for_check(self) -> Part | None:
        """Which signature the start has: it counts once."""
        return None if self._signature is None else SignedStart(id=self._signature.id)

    def judge(self) -> None:
        """Apply the rule to a run whose facts have just become known."""
        run, facts, info = self.run, self._facts, workflow.info()
        if not self._verifies:
            return super().judge()
        self._honoured.begin(self._nonce, reset=False)
        self._publish()
        # A run that continues another one still says who has started that.
        author = self._signature.by if self._signature and run.resumes else run.options.by
        key, mismatch = self._key_for(self._signature, author)
        if self._is_reset:
            why = RESET
        elif info.parent is not None:
            why = "that of its plan is not signed" if run.unsigned else ""
        elif mismatch:
            why = mismatch
        elif schedule_of(info.workflow_id):
            why = verification.schedule_problem(
                key, self._signature, self._content, info.workflow_id, info.start_time, facts.since
            )
        else:
            why = verification.start_problem(key, self._signature, self._content, info.start_time, facts.since)
        if info.parent is not None:
            run.starter = ABOVE
        elif self._signature is not None and not why:
            run.starter = self._signature.by
        # A worker that asks for no signatures loses nothing by a start that proves nothing.
        return self.settle(why) if facts.key else None

    def _key_for(self, signature: Signature | None, author: str) -> tuple[str, str]:
        """With which public key a signature is verified, or why it cannot be good."""
        if signature is None or not signature.by:
            return self._key, ""
        return verification.key_of(signature, author, _people(self.run) or People())

    async def watch(self) -> None:
        """Publish the nonce of a run that continues another one, and act on every reset, whatever the run waits for."""
        if is_carried():
            self._publish()
        while True:
            await self._was_reset.wait()
            self._was_reset.clear()
            self.turn()

    def _publish(self) -> None:
        """Tell in the memo what messages to this run are signed for."""
        if self._verifies:
            workflow.upsert_memo({NONCE: self._honoured.nonce})

    def memo(self) -> dict[str, Any] | None:
        """The memo for continue-as-new. Without the nonce in it, what is decided before the next run's first task would
        be signed for nothing, and refused.
        """
        if not self._verifies:
            return None
        kept = {name: RawValue(payload) for name, payload in workflow.info().raw_memo.items()}  # anybody may write one
        return {**kept, NONCE: self._honoured.nonce}

    def turn(self) -> None:
        """Discard what was decided before a reset and is not used yet, and the waivers. Before anything starts.

        Where no signatures are asked for, only decisions that have one were made for one run of the plan.
        """
        run = self.run
        if not self._verifies or not self._honoured.reset:
            return
        self._honoured.reset, now = False, workflow.now()
        self._publish()
        used = (Status.RUNNING, *DONE)
        unused = [name for name in run.decisions if name not in run.steps or run.steps[name].status not in used]
        for step_id in [name for name in unused if self._key or run.decisions[name].signed]:
            del run.decisions[step_id]
            known = step_id if step_id in run.steps else None
            text = f"the decision on step '{step_id}' was made before a reset; decide again"
            run.note(LogKind.VOID, text, now, known, code="RESET")
        if not self._key:
            return
        self.discard("came before a reset", "RESET")
        run.remembered, run.unsigned = {}, True
        self.be_strict(RESET)

    def check(self, kind: str, arguments: Sequence[Any], name: str = "") -> None:
        """Raises Refused UNSIGNED, BAD_SIGNATURE, UNKNOWN_SIGNER or REPLAYED."""
        self._good(kind, arguments, name)

    def take(self, kind: str, arguments: Sequence[Any], name: str = "") -> str:
        """As `check`, and let the signature count no second time. Returns whose own key it is by."""
        self.turn()  # first: it would take back what the message decides
        signature = self._good(kind, arguments, name)
        if signature is not None and self._honoured.note(signature):
            self._publish()
        return "" if signature is None else signature.by

    def _good(self, kind: str, arguments: Sequence[Any], name: str) -> Signature | None:
        """The good signature of a message; None if it has none that matters, and the worker asks for none."""
        message = {**one_object(arguments), **ADDED.get(name, {})}
        signature = signature_of(message)
        if not self._key and (signature is None or not signature.by or not self._verifies):
            super().check(kind, arguments, name)
            return None
        key, problem = self._key_for(signature, str(message.get("by") or ""))
        if problem:
            raise Refused(problem, "UNKNOWN_SIGNER")
        return verification.checked(key, kind, workflow.info().workflow_id, message, self._honoured)


def _proof_of(arguments: Sequence[Any]) -> tuple[Signature | None, bytes]:
    """The signature of a start, and the bytes that it must be of. Cheap where there is none."""
    message = one_object(arguments)
    signature = signature_of(message)
    if signature is None:
        return None, b""
    name = schedule_of(workflow.info().workflow_id)  # by the id alone: anybody may set a search attribute
    kind = SCHEDULE if name else START
    return signature, signed_bytes(kind, name or workflow.info().workflow_id, "", message, signature.id, signature.time)


def _people(run: Run) -> People | None:
    """The people and pages with keys of their own, by the policy of the worker that the run was begun with."""
    return run.facts.known_part(People)


def _nonce(seed: int) -> str:
    return f"{seed:016x}"


ADMISSION = Admission
