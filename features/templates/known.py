"""The templates that a command sees: those in `.plans/` of its workspace, and the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from plansurvive.client.plan_file import PlanFile
from plansurvive.features.templates.find import find_template, project_store, stores, user_store
from plansurvive.features.templates.listing import Listed, listed
from plansurvive.features.templates.store import Store, Version
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model.template import Template
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.settings import Settings


@dataclass(frozen=True)
class Known:
    """The templates of a directory and of the user."""

    workspace: Path
    settings: Settings

    @classmethod
    def of(cls, settings: Settings, workspace: str | None) -> Known:
        """Those for --workspace, else PLANS_WORKSPACE, else the current directory. Raises PlanError BAD_WORKSPACE."""
        path = home_path(workspace) if workspace is not None else settings.workspace or Path.cwd()
        if not path.is_dir():
            raise PlanError(f"{path} is not a directory; name the one with the project's templates", "BAD_WORKSPACE")
        return cls(path, settings)

    def find(self, name: str) -> Template:
        """The template that `NAME` or `NAME@HASH` means. Raises as `find_template`."""
        return find_template(name, self.workspace, self.settings.state_dir)

    def store(self, *, user: bool) -> Store:
        """The project's templates or the user's, for changing them."""
        if not user:
            return project_store(self.workspace)
        self.settings.make_state_dir()
        return user_store(self.settings.state_dir)

    def versions(self, template: Template) -> list[Version]:
        """All versions of a template, newest first."""
        index = self.store(user=template.where == "user").index(template.name)
        return list(reversed(index.versions)) if index else []

    def every(self) -> list[Listed]:
        """All templates, the project's first; one that cannot be read says why."""
        return listed(stores(self.workspace, self.settings.state_dir))


def plan_file_of(template: Template, settings: Settings, workspace: str | None) -> PlanFile:
    """A template as the plan file that it was saved from; a workspace that it names is relative to the project."""
    base = Known.of(settings, workspace).workspace.resolve()
    return PlanFile(template.label, template.text, template.data, base, template.name)


def completed(incomplete: str, environ: Mapping[str, str]) -> list[str]:
    """Template names with this prefix, or after `@` versions, for shell completion; never fails."""
    try:
        known = Known.of(Settings.read(environ), None)
        name, at, version = incomplete.partition("@")
        found = stores(known.workspace, known.settings.state_dir)
        if not at:
            return sorted({each for store in found for each in store.names() if each.startswith(name)})
        indexes = [store.index(name) for store in found if name in store.names()]
        hashes = [each.hash[:12] for index in indexes if index for each in reversed(index.versions)]
        return [f"{name}@{each}" for each in hashes if each.startswith(version)]
    except (PlanError, OSError):
        return []
