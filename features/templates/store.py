"""The templates of one folder: `NAME/HASH.yaml` (or .json) for each version; `NAME/template.yaml` lists them.

A version is kept as its author wrote it, comments included, under the hash of its content: it never changes, so people
can commit the folder and see what changed. The list, oldest first, says which one is the newest. A file whose content
is not what its name says was edited by hand, and is refused (TEMPLATE_CHANGED).

Rejected: one file per template with git as its history (a worker has no git), numbered files (two branches both make
number 4), a database. A name that project and user both have is refused: a cloned repository must not stand in for what
a person means.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationError

from plansurvive.features.templates.folder import Folder
from plansurvive.features.templates.names import NAME, Named, TemplateError, hash_of
from plansurvive.plans.definition.parsing import Unreadable
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.model import Value
from plansurvive.plans.model.template import SHORT, Template
from plansurvive.runtime.plan_files.text import data_of, is_yaml, text_of

INDEX = "template.yaml"
MAX_VERSIONS = 1_000
MAX_DESCRIPTION = 1_000
"""Maximum characters of a description."""
_ENDINGS = (".yaml", ".json")
_HEAD = "# Versions of this template, oldest first; `plan template save` adds one.\n"


class Version(Value):
    """One saved content."""

    hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    saved: str = Field(default="", max_length=40, description="When, ISO 8601.")


class Index(Value):
    """Everything about a template but its contents: the file `template.yaml`."""

    description: str = Field(default="", max_length=MAX_DESCRIPTION)
    versions: list[Version] = Field(min_length=1, max_length=MAX_VERSIONS, description="Oldest first.")

    @property
    def text(self) -> str:
        """As YAML, one line per version, so that two branches that add one merge without surprises."""
        rows = [f"description: {json.dumps(self.description, ensure_ascii=False)}\n" if self.description else ""]
        rows += [
            "versions:\n",
            *(f"- {{hash: {each.hash}, saved: {json.dumps(each.saved)}}}\n" for each in self.versions),
        ]
        return _HEAD + "".join(rows)


@dataclass(frozen=True)
class Store:
    """A folder of templates: that of a project, or of the user."""

    folder: Folder
    where: Literal["project", "user"]

    def names(self) -> list[str]:
        """The names of its templates."""
        return [
            name for name in self.folder.entries() if re.fullmatch(NAME, name) and self.folder.below(name).read(INDEX)
        ]

    def index(self, name: str) -> Index | None:
        """The versions of a template; None if there is none of this name. Raises TemplateError TEMPLATE_CHANGED."""
        folder = self.folder.below(name)
        content = folder.read(INDEX)
        if content is None:
            return None
        try:
            return Index.model_validate(data_of(INDEX, text_of(content)))
        except Unreadable as error:
            problem = error.problem.message
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        text = f"{folder.path / INDEX} cannot be read ({problem}); repair it, or restore it with git"
        raise TemplateError(text, "TEMPLATE_CHANGED")

    def versions(self, wanted: Named) -> list[Version]:
        """The versions that are meant, newest first: the newest alone, or those whose hash begins as given."""
        index = self.index(wanted.name)
        if index is None:
            return []
        if not wanted.hash:
            return index.versions[-1:]
        return [each for each in reversed(index.versions) if each.hash.startswith(wanted.hash)]

    def read(self, name: str, version: str) -> Template:
        """One version. Raises TemplateError TEMPLATE_CHANGED if its file is missing or is not what was saved."""
        folder = self.folder.below(name)
        index = self.index(name)
        for ending in _ENDINGS:
            content = folder.read(version + ending)
            if content is not None:
                path = str(folder.path / (version + ending))
                return self._template(name, version, path, content, index.description if index else "")
        text = f"{folder.path} has no file {version[:SHORT]}…, which {INDEX} lists; restore it, or save it again"
        raise TemplateError(text, "TEMPLATE_CHANGED")

    def save(self, name: str, text: str, description: str | None = None) -> tuple[str, bool]:
        """Add a version, which becomes the newest; returns its hash, and whether anything changed.

        The content of an older version makes that one the newest again. `description` None keeps the one there is.
        Raises TemplateError.
        """
        version = hash_of(text)
        folder = self.folder.below(name)
        with folder.locked():
            before = self.index(name)
            kept = description if description is not None else before.description if before else ""
            versions = [each for each in before.versions if each.hash != version] if before else []
            is_newest = bool(before) and before is not None and before.versions[-1].hash == version
            if is_newest and before is not None:
                versions = before.versions
            else:
                now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                versions = [*versions, Version(hash=version, saved=now)]
            after = _index(kept, versions)
            name_of_file = version + (".yaml" if is_yaml("", text) else ".json")
            is_whole = self._holds(folder, name_of_file, version)
            if not is_whole:
                folder.write(name_of_file, text.encode())
            if after != before:
                folder.write(INDEX, after.text.encode())
            return version, after != before or not is_whole

    def delete(self, name: str, version: str = "") -> None:
        """Delete a template, or one version of it."""
        folder = self.folder.below(name)
        with folder.locked():
            index = self.index(name)
            versions = index.versions if index else []
            left = [each for each in versions if version and each.hash != version]
            if index and left:
                folder.write(INDEX, _index(index.description, left).text.encode())
            else:
                folder.remove(INDEX)
            for each in versions:
                for ending in _ENDINGS if each not in left else ():
                    folder.remove(each.hash + ending)
        if not left:
            self.folder.remove(name)

    def _holds(self, folder: Folder, name: str, version: str) -> bool:
        content = folder.read(name)
        try:
            return content is not None and hash_of(text_of(content)) == version
        except Unreadable:
            return False

    def _template(self, name: str, version: str, path: str, content: bytes, description: str) -> Template:
        try:
            text = text_of(content)
            if hash_of(text) != version:
                how = f"save it as a new version with `plan template save {name} {path}`, or restore it"
                raise TemplateError(f"{path} was changed after it was saved; {how}", "TEMPLATE_CHANGED")
            data = data_of(path, text)
        except Unreadable as error:
            raise InvalidPlan([error.problem]) from None
        return Template(
            name=name, hash=version, where=self.where, path=path, description=description, text=text, data=data
        )


def _index(description: str, versions: list[Version]) -> Index:
    try:
        return Index(description=description, versions=versions)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        text = f"{first['loc'][0]}: {first['msg']}; a template has at most {MAX_VERSIONS} versions and a description"
        raise TemplateError(f"{text} of {MAX_DESCRIPTION} characters") from None
