"""What the page remembers between requests about drafts: versions it has shown, and regenerations under way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from starlette.requests import Request
from temporalio.client import Client

from plansurvive.apps.web.common.service import service_of
from plansurvive.apps.web.drafts.reviewed import Reviewed, reviewed
from plansurvive.apps.web.drafts.versions import KnownVersions
from plansurvive.client import runs
from plansurvive.client.access.people import Author, Person
from plansurvive.client.ids import plan_id
from plansurvive.features.files.verbs import Undone
from plansurvive.plans.errors import PlanError

MAX_FAILED = 200
"""Failed regenerations whose feedback is kept for another try."""


@dataclass
class Regeneration:
    """The LLM is asked to revise a plan, or was, and failed."""

    feedback: str
    by: str
    task: asyncio.Task[None] | None = None
    error: PlanError | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether the LLM has not answered yet."""
        return self.task is not None and not self.task.done()


@dataclass
class Undo:
    """An undo that this page began."""

    task: asyncio.Task[Undone] | None = None
    undo_plan: str = ""
    """The plan that runs the undos of steps, once there is one."""
    error: PlanError | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it has not ended."""
        return self.task is not None and not self.task.done()


@dataclass
class Memory:
    """Of one served page."""

    versions: KnownVersions = field(default_factory=KnownVersions)
    regenerations: dict[str, Regeneration] = field(default_factory=dict)
    undos: dict[tuple[str, str], Undo] = field(default_factory=dict)
    """By plan and step."""

    def regenerate(self, client: Client, plan: str, feedback: str, version: int | None, person: Person) -> Regeneration:
        """Ask the LLM in the background. If it is being asked already, nothing else is sent."""
        name = plan_id(plan)
        present = self.regenerations.get(name)
        if present is not None and present.is_under_way:
            return present
        while len(self.regenerations) >= MAX_FAILED:
            self.regenerations.pop(next(iter(self.regenerations)))
        begun = self.regenerations[name] = Regeneration(feedback, person.name)
        begun.task = asyncio.create_task(self._ask(client, name, begun, version, person.author))
        return begun

    async def _ask(self, client: Client, plan: str, begun: Regeneration, version: int | None, author: Author) -> None:
        try:
            await runs.regenerate(client, plan, begun.feedback, expect_version=version, **author)
        except PlanError as error:
            begun.error = error
        else:
            if self.regenerations.get(plan) is begun:
                del self.regenerations[plan]


def memory_of(request: Request) -> Memory:
    """The memory of the application that a request belongs to."""
    state = request.app.state
    if not hasattr(state, "drafts"):
        state.drafts = Memory()
    found: Memory = state.drafts
    return found


async def loaded(request: Request) -> Reviewed:
    """The plan that a request is about, as it is now; its version is remembered. Raises as `reviewed`."""
    service = service_of(request)
    found = await reviewed(await service.client(), request.path_params["plan_id"], service.settings)
    memory_of(request).versions.note(found.run)
    return found
