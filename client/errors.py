"""The client's errors that are raised or caught in several places; the others are defined where they are raised.

PlanError                 plans/errors.py
├── NotConnected          no Temporal server could be reached or started; exit code 3; runtime/errors.py
│   └── NoWorker          no worker polls the plan's queue, or its workflow task keeps failing (PLAN_STUCK)
├── PlanNotFound          exit code 4
│   ├── ScheduleNotFound  no schedule of plans has this name; apps/schedules/server.py
│   └── RecordGone        what was recorded of a run is not there any more; apps/evaluation/record.py
├── PlayFailed            a recorded run that this version cannot replay; apps/evaluation/instance.py
├── NothingToReplay       a run that asked no LLM; apps/evaluation/playing.py
├── ScheduleExists        the name of a schedule is taken; apps/schedules/server.py
├── BadSchedule           a schedule that cannot be; apps/schedules/spec.py
├── PlanExists            the id was used before
├── PlanClosed            a message to a plan that has ended
├── BadPlanId             a text that cannot be a plan id
├── Refused               the plan rejected a message; plans/errors.py
├── SettingError          an invalid setting; runtime/settings.py
├── PlanFileError         a plan file that cannot be opened; client/plan_file.py
├── NoProject             the directory for a new project cannot be used; client/first_project/create.py
├── AppMissing            a command or a part of an app that is not installed
├── ImportRefused         a document of which no plan can be made; apps/importers/commands.py
├── BadRecord             the file of an audit record is none; features/audit/files.py
├── PruneRefused          nothing was removed; features/upkeep/sweep.py
├── Forbidden             somebody on the web page may not do this; client/access/people.py
├── Forbidden             an agent, or the person it speaks for, may not do this; apps/mcp/common/host.py
├── SlowBody              a request of the web page that does not arrive in time; client/access/guard.py
├── LoginFailed           a login on the web page that did not end in a person; client/access/provider.py
├── BadForm               a form of the web page that is not accepted; client/access/forms.py
├── OutsideRoots          a path that the web page, or an agent, may not use; client/requests/roots.py
├── WorkerFailed          the background worker did not start; exit code 3; runtime/errors.py
└── InvalidPlan           plans/errors.py
    ├── EditRefused       edits that would make a plan invalid, of which none was made
    ├── WorkerRefused     a plan that its worker refused, whatever the client's check has said
    └── PlanRefused       an InvalidPlan that knows the file it was read from
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.runtime.errors import NotConnected

if TYPE_CHECKING:
    from plansurvive.plans.model import Problem


class NoWorker(NotConnected):
    """No worker polls the plan's task queue; the plan waits and continues as soon as one does."""

    code = "NO_WORKER"


class Sought(NamedTuple):
    """What was looked for on a server and is not there."""

    what: str
    """`there is no plan 'x'`."""
    instead: str
    """What to do now."""
    plan: str = ""
    """The id; empty where it was not a plan that was looked for."""
    place: str = ""
    """Where it was looked for, as `client.missing.in_namespace` has it."""
    near: str = ""
    """The id that is probably meant."""

    @property
    def sentence(self) -> str:
        """All of it."""
        where = f"{self.place} of this server" if self.place else " on this server"
        hint = f"; did you mean '{self.near}'?" if self.near else ""
        return f"{self.what}{where}; {self.instead}{hint}"


class PlanNotFound(PlanError):
    """The server has no plan with this id. `client.missing` completes `sought`, if there is one, for people."""

    code = "PLAN_NOT_FOUND"

    def __init__(self, message: str | Sought) -> None:
        super().__init__(message.sentence if isinstance(message, Sought) else message)
        self.sought = message if isinstance(message, Sought) else None


class PlanExists(PlanError):
    """A plan with this id is running or ran before; ids are never reused."""

    code = "PLAN_EXISTS"


class PlanClosed(PlanError):
    """The plan has ended and accepts no more messages."""

    code = "PLAN_CLOSED"


class BadPlanId(PlanError):
    """A text that cannot be a plan id."""

    code = "BAD_PLAN_ID"


class AppMissing(PlanError):
    """What was asked for is part of an app that is not installed."""

    code = "APP_MISSING"


class Located(Protocol):
    """A file whose problems have lines, such as a plan file."""

    @property
    def name(self) -> str:
        """The path as given."""

    def line(self, problem: Problem) -> int | None:
        """The line of a problem, if it has one."""


class EditRefused(InvalidPlan):
    """Edits that would make the plan invalid: none was made. Its problems are those that they would add."""

    head = "Nothing was changed: the edited plan would have"


class WorkerRefused(InvalidPlan):
    """A plan that its worker refused: no step of it has run, and `plan resume` has it checked again."""

    head = "Its worker refused the plan:"


class PlanRefused(InvalidPlan):
    """A plan file with problems. `file` allows showing each problem with its line number."""

    def __init__(self, problems: Sequence[Problem], file: Located) -> None:
        super().__init__(problems)
        self.file = file
