"""The seam for plans that are kept under names: steps run them, people start them, the LLM is offered them.

A feature that keeps such plans has a side `library` with its own `Library`; the same in workers and in `plan check`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from plansurvive.plans.errors import PlanError
from plansurvive.plans.model.template import Template


class Library:
    """No plan has a name. Example of one that has plans: `templates`."""

    def find(self, name: str, workspace: str | Path, state_dir: Path | None) -> Template:  # noqa: ARG002
        """The plan that `NAME` or `NAME@HASH` means, in a workspace or among the user's own in the state directory.

        Raises PlanError UNKNOWN_TEMPLATE, and others that say why it cannot be used.
        """
        raise PlanError(f"there is no template '{name}': templates are not part of this program", "UNKNOWN_TEMPLATE")

    def for_model(self, workspace: str, state_dir: Path | None, redacted: Callable[[str], str]) -> str:  # noqa: ARG002
        """One line per plan that an LLM may name in the plan it writes; never raises. `redacted` removes secrets."""
        return ""
