"""Where a person decides what a plan awaits, for an agent that may not: a page, the Temporal UI, a command.

The link to the web page is without its secret: what an agent is told must not let it decide.
"""

from __future__ import annotations

from pydantic import Field

from plansurvive.client.ids import plan_id, workflow_id
from plansurvive.client.page.served_page import without_key
from plansurvive.client.requests.connected import Connected
from plansurvive.plans.model import Value


class Where(Value):
    """Where a person sees a plan, and decides what it awaits."""

    page: str | None = Field(default=None, description="The plan's page, if the web page is served.")
    ui: str | None = Field(default=None, description="The plan in the Temporal UI.")
    command: str = Field(description="The command that shows what awaits a decision, and how to decide.")

    def in_review(self, plan: str) -> Where:
        """The same for a plan in review, of which no step awaits anything yet."""
        return self.model_copy(update={"command": f"plan review {plan}"})

    @property
    def text(self) -> str:
        """A sentence for an agent to pass on."""
        places = [f"on the web page {self.page}"] if self.page else []
        return f"A person decides {' or '.join([*places, f'with `{self.command}`'])}."


def where(here: Connected, plan: str) -> Where:
    """Where people find a plan."""
    name = plan_id(plan)
    page = here.page(name)
    shown = without_key(page) if page else None
    return Where(page=shown, ui=here.link(workflow_id(plan)), command=f"plan pending {name}")
