"""Results of attempts, kept until nobody can ask for them again.

A worker that outlives its server ends what it runs, but cannot hand the result over; the SDK gives up after some
seconds. The server counts the attempt as lost when it is back, and sends the next one, mostly to the same worker. Its
result is here then: a command that had finished is not run again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.plans.activity_io import Return

MOST = 512
"""Results kept. While the server is away no step begins, so this is more than can end meanwhile."""
_Key = tuple[str, str, datetime]


@dataclass(frozen=True)
class Undelivered:
    """What the newest attempts of one worker came to: a value, or a failure that ends the step.

    The server sends no further attempt after either, unless it never heard of it. A failure that may be tried again is
    not kept: there the next attempt has to do the work.
    """

    _outcomes: OrderedDict[_Key, Return | ApplicationError] = field(default_factory=OrderedDict)

    def keep(self, info: activity.Info, outcome: Return | ApplicationError) -> None:
        """Keep what the present attempt came to."""
        self._outcomes[_key(info)] = outcome
        if len(self._outcomes) > MOST:
            self._outcomes.popitem(last=False)

    def of_earlier_attempt(self, info: activity.Info) -> Return | None:
        """What an earlier attempt of the present activity came to; None if none has ended here. Raises its failure."""
        outcome = self._outcomes.get(_key(info)) if info.attempt > 1 else None
        if isinstance(outcome, ApplicationError):
            raise outcome
        return outcome


def _key(info: activity.Info) -> _Key:
    """The activity within its run of the workflow, by when it was scheduled: a step may begin again under its id."""
    return info.workflow_run_id or "", info.activity_id, info.scheduled_time
