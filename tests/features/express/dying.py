"""Runs a segment in a process of its own, to be killed: `python -m tests.features.express.dying STATE STEPS ATTEMPT`.

The steps are a chain; each call appends its name to the file `ledger` of the state directory. In the first attempt, the
call in the middle does not end. Prints the name of a step
once its outcome is kept, and at the end the values, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from plansurvive.features.express.journal import Journal, Segment
from plansurvive.features.express.model import ExpressFact, SegmentEnd
from plansurvive.features.express.running import Running
from plansurvive.features.express.segment import Bounds, Made
from plansurvive.features.express.segment import Segment as Driven
from plansurvive.plans.activity_io import Facts, Return
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import Run
from tests.plans.building import NOW, TOOLS
from tests.plans.flow.player import note, plan

SEGMENT = Segment("run-1", "segment-1")
QUICK = {name: each.model_copy(update={"quick": not each.durable}) for name, each in TOOLS.items()}
ASKED = {"express": ExpressFact(on=True)}


def chain(length: int) -> Run:
    """Each step adds to the value of the one before."""
    rest = (note(f"s{i}", f"{{{{s{i - 1}}}}}.{i % 10}"[-20:]) for i in range(1, length))
    return plan(note("s0", "0"), *rest, facts=Facts(tools=QUICK, workspace="/w", parts=ASKED))


class Said(Driven):
    """Says which calls have completed."""

    def completed(self, step_id: str, returned: Return, size: int, now: datetime) -> None:
        """It is in the journal."""
        super().completed(step_id, returned, size, now)
        print(step_id, flush=True)


async def run(state: Path, steps: int, attempt: int) -> None:
    """One attempt."""
    ledger = os.open(state / "ledger", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    async def make(made: Made) -> Return:
        os.write(ledger, f"{made.step.id}\n".encode())
        if attempt == 1 and made.step.id == f"s{steps // 2}":
            print(made.step.id, "is under way", flush=True)
            await asyncio.Event().wait()
        return Return(value=str(made.filled.args["text"])[-12:], duration=0.0)

    schedule = Schedule(chain(steps))
    schedule.begin(NOW)
    driven = Said(schedule, datetime.now(UTC), Bounds(seconds=600, steps=steps, bytes=10**9))
    with Journal(state) as journal:
        running = Running(driven, make, lambda: datetime.now(UTC), journal, SEGMENT, attempt)
        end = SegmentEnd.model_validate_json(await running.end())
    print(json.dumps([each.returned and each.returned.value for each in end.calls]), flush=True)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
    os._exit(0)
