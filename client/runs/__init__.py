"""The client API: one typed async function per verb. A script can do everything the command line does.

    started = await runs.start(client, {"steps": [...]}, options=Options(workspace="/data"))
    await runs.approve(client, started.plan_id, Choice(step_id="remove", by="ann"))
    summary = await runs.wait(client, started.plan_id)

`client` is a `temporalio.client.Client`; `runtime.connect.reach` returns one with the data converter that plans need.
`plan` is a plan id or a workflow id (`plan-ID`); an agent is named by its id, `agent-ID`. All functions also work on
plans that have ended, unless they say otherwise.

Errors are PlanErrors with a stable `code` and a `message` for people (client/errors.py). Every function that takes
`plan` may raise BadPlanId, PlanNotFound and NotConnected; one that needs an answer from the plan may also raise
NoWorker. The docstrings name only what comes on top of these.

Views (`PlanView`, `BriefView`, `EventView`) are the plan's own answers; `view.to_json()` is what `plan show --json`
prints. A `say` callback receives sentences for the user, for example that the server does not answer at the moment.
"""

from __future__ import annotations

from plansurvive.client.verbs import runs as verbs
from plansurvive.client.verbs.runs import *  # noqa: F403
from plansurvive.features.agents.verbs import recorded as history
from plansurvive.features.agents.verbs import start_agent
from plansurvive.features.editing.verbs import edit
from plansurvive.features.files.model import ChangesReport
from plansurvive.features.files.verbs import compensate, compensations, file_changes, undo
from plansurvive.features.planning.verbs import make, regenerate
from plansurvive.features.policy.verbs import withdraw
from plansurvive.plans.execution.revision import Edited

__all__ = [
    "ChangesReport", "Edited", "compensate", "compensations", "edit", "file_changes", "history", "make",
    "regenerate", "start_agent", "undo", "withdraw",
]  # fmt: skip
__all__ += verbs.__all__
