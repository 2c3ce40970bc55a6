"""`plan undo` follows the plan that runs the undos, and notes its id for the message after Ctrl-C."""

from __future__ import annotations

from dataclasses import dataclass

from plansurvive.client.cli.follow.follow import follow
from plansurvive.client.cli.terminal import output
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import Started, Summary
from plansurvive.features.files.verbs import Undone, undo_whole, would_undo


@dataclass
class Undoing:
    """One call of the command."""

    plan: str
    step: str | None
    dry_run: bool
    partly: bool
    yes: bool
    as_json: bool
    begun: str | None = None
    """Id of the plan that runs the undos, once there is one."""

    async def run(self, here: Connected) -> Undone:
        """Undo steps and files, or say what would be undone."""
        if self.dry_run:
            return await would_undo(here.client, self.plan, self.step, partly=self.partly)

        async def to_its_end(started: Started) -> Summary:
            self.begun = started.plan_id
            if self.as_json:
                return await runs.wait(here.client, started.plan_id)
            output.show(f"plan {started.plan_id}")
            return await follow(here, started.plan_id, as_json=False)

        return await undo_whole(here.client, self.plan, self.step, to_its_end, partly=self.partly, yes=self.yes)
