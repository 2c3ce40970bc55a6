"""What keeps the limits of a task queue, whose history is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from plansurvive.features.limits.model import EXCHANGE, WORKFLOW, workflow_id
from tests.kit.driving import Plans, Started

Scenario = Callable[[Plans], Awaitable[Started]]


async def limited(plans: Plans) -> Started:
    """Two calls are admitted, a third waits, one ends, and one server asks to be left alone."""
    claim = {"bucket": "tools.work", "rates": [[2, 60]], "concurrency": 2}
    name = workflow_id(plans.queue)
    handle = await plans.client.start_workflow(WORKFLOW, {}, id=name, task_queue=plans.queue)
    asks = [{"id": f"a{at}", "call": f"c{at}", "what": f"plan s{at}", "claims": [claim]} for at in range(3)]
    await handle.execute_update(EXCHANGE, {"asks": asks})
    await handle.execute_update(EXCHANGE, {"ended": [{"id": "a0"}], "alive": ["a1"]})
    await handle.execute_update(EXCHANGE, {"ended": [{"id": "a1", "pause": 5, "of": ["tools.work"]}], "left": ["c2"]})
    return Started(plans.client, name)


LIMITED: Mapping[str, Scenario] = {"limits-kept": limited}
