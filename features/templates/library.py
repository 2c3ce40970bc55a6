"""The plans under names that the core asks for: the templates of a workspace and of the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from plansurvive.features.templates.find import find_template, stores
from plansurvive.features.templates.listing import text_for_model
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model.template import Template
from plansurvive.runtime.plan_files import library


class Library(library.Library):
    """The templates."""

    def find(self, name: str, workspace: str | Path, state_dir: Path | None) -> Template:
        """See `find_template`."""
        return find_template(name, workspace, state_dir)

    def for_model(self, workspace: str, state_dir: Path | None, redacted: Callable[[str], str]) -> str:
        """One line per template; none if `.plans/` is not to be read, a link for example."""
        try:
            return text_for_model(stores(workspace, state_dir), redacted)
        except (PlanError, OSError):
            return ""


LIBRARY = Library()
