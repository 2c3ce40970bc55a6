"""Finds a template by `NAME` or `NAME@HASH`: in `.plans/` of a workspace, and among those of the user.

`NAME` is the newest version, `NAME@HASH` exactly one. A name that both have, with different contents, is refused and
not resolved by an order: a repository that was cloned must not stand in for a template of the user's own.
"""

from __future__ import annotations

from pathlib import Path

from plansurvive.features.templates.folder import Folder
from plansurvive.features.templates.names import Named, TemplateError, named
from plansurvive.features.templates.store import Store
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.model.template import SHORT, Template

PROJECT = ".plans"
"""Folder of a project's templates, in the root of its workspace. Files in it are protected: a step needs approval."""
USER = "templates"
"""Folder of the user's templates, in the state directory."""


def stores(workspace: str | Path | None, state_dir: Path | None) -> list[Store]:
    """The stores that exist: that of the workspace, then the user's. Either may be None: there is none."""
    found: list[Store] = []
    if workspace is not None and Path(workspace).is_dir():
        found.append(project_store(Path(workspace)))
    if state_dir is not None and state_dir.is_dir():
        found.append(user_store(state_dir))
    return found


def project_store(workspace: Path) -> Store:
    """The templates of a workspace."""
    return Store(Folder(workspace.resolve(), (PROJECT,), private=False), "project")


def user_store(state_dir: Path) -> Store:
    """The templates of the user whose state directory it is."""
    return Store(Folder(state_dir.resolve(), (USER,), private=True), "user")


def find_template(name: str, workspace: str | Path | None, state_dir: Path | None = None) -> Template:
    """The template that `NAME` or `NAME@HASH` means.

    `workspace`: the directory whose `.plans/` counts; `state_dir`: of the user (`Settings.state_dir`). Raises
    TemplateError UNKNOWN_TEMPLATE, AMBIGUOUS_TEMPLATE, TEMPLATE_CHANGED or BAD_TEMPLATE, and InvalidPlan if its content
    is neither JSON nor YAML.
    """
    return find_in(stores(workspace, state_dir), named(name))


def find_in(known: list[Store], wanted: Named) -> Template:
    """As `find_template`, among these stores."""
    found = [(store, version.hash) for store in known for version in store.versions(wanted)]
    if not found:
        raise _unknown(wanted, known)
    if len({version for _, version in found}) > 1:
        raise _ambiguous(wanted, found)
    store, version = found[0]
    return store.read(wanted.name, version)


def _unknown(wanted: Named, known: list[Store]) -> TemplateError:
    names = sorted({name for store in known for name in store.names()})
    if wanted.name in names:
        text = f"template '{wanted.name}' has no version {wanted.hash}; `plan template show {wanted.name}` lists them"
    else:
        near = Hints().question(wanted.name, names) or "; `plan template list` lists them"
        text = f"there is no template '{wanted.name}'{near}"
    return TemplateError(text, "UNKNOWN_TEMPLATE")


def _ambiguous(wanted: Named, found: list[tuple[Store, str]]) -> TemplateError:
    if wanted.hash:
        text = f"several versions of '{wanted.name}' begin with {wanted.hash}; write more characters"
    else:
        (_, ours), (_, own) = found[0], found[-1]
        text = (
            f"this project and you both have a template '{wanted.name}', and they differ; write"
            f" {wanted.name}@{ours[:SHORT]} for the project's or {wanted.name}@{own[:SHORT]} for yours"
        )
    return TemplateError(text, "AMBIGUOUS_TEMPLATE")
