"""The exception hierarchy of the project; every class has a stable error code.

    PlanError                 base; a workflow failure type: it fails the run, not the workflow task
    ├── InvalidPlan           a plan with problems; carries all of them
    ├── Refused               a message (approval, edit, control) that cannot be accepted now
    │   └── UnknownQueue      an edit binds a step to a task queue whose workers have not reported yet
    ├── Unanswered            the LLM gave no usable answer, or may not be asked again
    ├── BadReference          a `$step` or `{{step}}` that cannot be filled in
    ├── BadExpression         a JMESPath expression that does not parse or apply
    ├── IllegalMove           an invalid status transition
    ├── ToolError             a tool failed; says whether a retry may help
    │   ├── AddressRefused    a host that no call may connect to; activities/network/address_policy.py
    │   ├── LlmError          an LLM request that failed; activities/llm/errors.py
    │   ├── GitFailed         a command of git that failed; features/worktrees/git.py
    │   └── Conflict          work that cannot be merged as it is, with a question; features/worktrees/conflicts.py
    ├── StorageError          stored data is missing or damaged; runtime/storage.py
    │   └── StorageGone       the whole storage is out of reach, perhaps for a while only
    ├── BadRing               PLANS_KEYS names something that is not a key ring; features/keys/ring.py
    ├── KeyMissing            the key of something encrypted is not in the ring; runtime/errors.py
    ├── Unauthentic           something encrypted was changed; runtime/errors.py
    ├── PlainRefused          a payload that is not encrypted, where only those are read; runtime/errors.py
    ├── TemplateError         a template that is missing, ambiguous or changed; features/templates/names.py
    ├── WrongLayout           a state directory of a newer version; runtime/versions/layout.py
    ├── NoVersions            a server without versions of workers; runtime/versions/routing.py
    ├── BadVersion            a version that cannot be ramped, drained or gone back to; runtime/versions/routing.py
    ├── Undecodable           a message or a start argument that cannot be decoded; given to a workflow as a value
    ├── LinkRefused           a one-time link that decides nothing; runtime/links/token.py
    ├── Waits                 an attempt that does not begin yet; activities/feature.py
    │   └── LimitReached      as a limit is used up; features/limits/admission.py
    ├── LimiterAway           what keeps the limits does not answer; features/limits/exchanges.py
    ├── ServiceRefused        the user service cannot be installed here; apps/service/unit.py
    ├── HistoryWriteFailed    an agent's history could not be written; features/agents/history_store.py
    └── ...                   the client's own; client/errors.py

A message says what is wrong, where, and what to do next. `plans/error_codes.py` explains the codes, which appear in
`--json` output and in a step's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plansurvive.plans.model import Problem


OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
"""Code of a call that was lost and is not repeatable: whether it took effect is not known."""
MAY_HAVE_HAPPENED = (
    "all or part of it may have happened. Check what it did: it is called again only when the plan has ended and is"
    " resumed, or rerun from this step"
)
"""What is known of such a call, and what can be done. Nothing repeats or skips it while the plan runs."""


class PlanError(Exception):
    """Base class of all errors of the project. `code` is a stable upper-case identifier; `message` is for people."""

    code = "PLAN_ERROR"

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class InvalidPlan(PlanError):
    """A plan that failed validation. `problems` lists every problem, not only the first."""

    code = "INVALID_PLAN"
    head = "The plan has"

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = "\n".join(f"- {problem.text}" for problem in problems)
        super().__init__(f"{self.head} {len(problems)} problem{'s' * (len(problems) != 1)}:\n{lines}")
        self.problems = list(problems)


class Refused(PlanError):
    """A rejected message: unknown step, already decided, stale version. Nothing was changed; `code` says why."""

    code = "REFUSED"


class UnknownQueue(Refused):
    """An edit binds a step to a task queue whose workers have not reported their tools and workspace yet."""

    code = "UNKNOWN_QUEUE"

    def __init__(self, step_id: str, queue: str) -> None:
        super().__init__(f"step '{step_id}' cannot be bound to queue '{queue}': its workers have not reported yet")
        self.queue = queue


class Undecodable(PlanError):
    """What a workflow is given in place of a message or start argument that cannot be decoded (`runtime.storage`).

    `lost`: its content should be in the storage for large values, and was not there. Storage may change; what history
    itself holds does not, so every other reason is the same whenever the history is replayed.
    """

    code = "UNDECODABLE"

    def __init__(self, message: str, lost: bool = False) -> None:
        super().__init__(message)
        self.lost = lost


class Unanswered(PlanError):
    """The LLM gave no usable answer. `text` is its last answer, `problems` what was wrong with it."""

    code = "LLM_BAD_ANSWER"

    def __init__(self, message: str, code: str | None = None, problems: Sequence[str] = (), text: str = "") -> None:
        super().__init__(message, code)
        self.problems = list(problems)
        self.text = text


class BadReference(PlanError):
    """A reference to a missing value, or to one that does not fit its place.

    `after`: what stands before it, where that is why its value cannot be inserted.
    """

    code = "BAD_REFERENCE"

    def __init__(self, message: str, code: str | None = None, after: str = "") -> None:
        super().__init__(message, code)
        self.after = after


class BadExpression(PlanError):
    """An expression that does not parse, or does not apply to its values."""

    code = "BAD_EXPRESSION"


class IllegalMove(PlanError):
    """An invalid status transition: a bug in the caller, never a fault of a plan."""

    code = "ILLEGAL_MOVE"


class ToolError(PlanError):
    """A tool failed.

    `retryable` is true when the same call may succeed later (a busy server, a timeout) and false when it cannot (a
    missing file, a conflict): no further attempt is made then, whatever the step's retry policy says. `retry_after`, in
    seconds, replaces the step's own delay before the next attempt.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message, code)
        self.retryable = retryable
        self.retry_after = retry_after
