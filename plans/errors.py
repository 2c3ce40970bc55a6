"""The exceptions of the project, one tree, each with a stable code.

    PlanError                 base; workflows declare it, so that it fails a run instead of wedging it
    ├── InvalidPlan           a plan with problems; carries all of them
    ├── Refused               a message (approval, edit, control) that cannot be accepted now
    │   └── UnknownQueue      an edit binds a step to a queue whose workers have told nothing yet
    ├── Unanswered            the LLM gave no answer that can be used, or may not be asked again
    ├── BadReference          a `$step` or `{{step}}` that cannot be filled in
    ├── BadExpression         a JMESPath expression that cannot be read or applied
    ├── IllegalMove           a status that cannot follow from the present one
    ├── ToolError             a tool could not do its work; says whether another attempt may help
    │   └── LlmError          an LLM call that gave no answer; activities/llm/errors.py
    ├── StorageError          stored data is missing or damaged; runtime/storage.py
    ├── HistoryWriteFailed    an agent's history could not be written; activities/lifecycle/agent_history.py
    └── ...                   the client's own; client/errors.py

A message says what is wrong, where, and what to do now. The codes are those of the fault list; they appear in `--json`
output and in a step's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plans.model import Problem


class PlanError(Exception):
    """Base of every error of the project. `code` is stable, in capitals; the text is for people."""

    code = "PLAN_ERROR"

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class InvalidPlan(PlanError):
    """A plan that cannot run as it is. `problems` holds every one of them, never only the first."""

    code = "INVALID_PLAN"

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = "\n".join(f"- {problem.text}" for problem in problems)
        super().__init__(f"The plan has {len(problems)} problem{'s' * (len(problems) != 1)}:\n{lines}")
        self.problems = list(problems)


class Refused(PlanError):
    """A message that changes nothing: unknown step, decided already, stale version. `code` says which."""

    code = "REFUSED"


class UnknownQueue(Refused):
    """A step is to be bound to a queue whose workers have not been asked about their tools and workspace."""

    code = "UNKNOWN_QUEUE"

    def __init__(self, step_id: str, queue: str) -> None:
        super().__init__(f"step '{step_id}' cannot be bound to queue '{queue}': nothing is known of its workers")
        self.queue = queue


class Unanswered(PlanError):
    """The LLM gave no answer that can be used. `problems` says what was wrong with the last one, `text` is that one."""

    code = "LLM_BAD_ANSWER"

    def __init__(self, message: str, code: str | None = None, problems: Sequence[str] = (), text: str = "") -> None:
        super().__init__(message, code)
        self.problems = list(problems)
        self.text = text


class BadReference(PlanError):
    """A reference to a value that is not there, or that does not fit where it stands."""

    code = "BAD_REFERENCE"


class BadExpression(PlanError):
    """An expression that cannot be read, or not be applied to the values it is given."""

    code = "BAD_EXPRESSION"


class IllegalMove(PlanError):
    """A status that cannot follow from the present one: a mistake in the caller, never in a plan."""

    code = "ILLEGAL_MOVE"


class ToolError(PlanError):
    """A tool could not do its work.

    `retryable` is true when the same call may succeed later (a busy server, a time limit), false when it cannot (a
    missing file, a conflict): then no further attempt is made, whatever the step's retry rule says. `retry_after` is
    in seconds and replaces the step's own delay before the next attempt.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message, code)
        self.retryable = retryable
        self.retry_after = retry_after
