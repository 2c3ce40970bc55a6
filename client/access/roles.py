"""Who has which role: the rules of PLANS_WEB_ROLES, as pairs or as a file that may change while the page is served.

The most specific rule decides: a person's name, else the highest role of the person's groups, else the domain of the
address, else `*`. So a name can be given less than its group.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from plansurvive.client.access.people import Role
from plansurvive.plans.model.identities import identity
from plansurvive.runtime.settings import SettingError

LOG = logging.getLogger(__name__)
GROUP = "group:"
EVERYBODY = "*"
MAX_FILE = 1_000_000
ROLES: Mapping[str, Role | None] = MappingProxyType({
    "viewer": Role.VIEWER, "approver": Role.APPROVER, "operator": Role.OPERATOR, "none": None,
})  # fmt: skip
"""The words of a rule. none: may log in to nothing."""
_SETTING = "PLANS_WEB_ROLES"


@dataclass(frozen=True)
class Rules:
    """Rules by whom they are about: a name, `@domain`, `group:NAME`, `*`. ASCII names and domains in any case."""

    given: Mapping[str, Role | None] = field(default_factory=dict)

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Rules:
        """Rules of pairs of whom and role. Raises SettingError."""
        found: dict[str, Role | None] = {}
        for who, word in pairs:
            if word not in ROLES:
                raise _problem(f"{word!r} is not a role; the roles are {', '.join(ROLES)}")
            name = _key(who)
            if name.startswith(GROUP) and not who.startswith(GROUP):
                raise _problem(f"{who!r} is neither a group nor a name; write {GROUP} in lower case")
            if name in found and found[name] is not ROLES[word]:
                raise _problem(f"{who!r} has two roles; keep one")
            if not name or name in (GROUP, "@"):
                raise _problem(
                    f"{who!r} does not name a person or group; write a name, @DOMAIN, {GROUP}NAME or {EVERYBODY}"
                )
            found[name] = ROLES[word]
        return cls(found)

    def role(self, name: str, groups: Collection[str]) -> Role | None:
        """The role of a person; None: may not use the page."""
        given, key = self.given, _key(name)
        if key in given and not key.startswith((GROUP, "@", EVERYBODY)):
            return given[key]
        of_groups = [given[GROUP + each] for each in groups if GROUP + each in given]
        if of_groups:
            return max(of_groups, key=lambda role: role or 0)
        domain = _key("@" + name.rpartition("@")[2])
        if "@" in name and domain in given:
            return given[domain]
        return given.get(EVERYBODY)


class RoleSource:
    """The rules in force: those of the setting, or of its file as it is now."""

    def __init__(self, setting: str) -> None:
        self._path = Path(setting) if setting.endswith(".toml") else None
        self._seen: tuple[int, int] | None = None
        self._rules = Rules() if self._path else Rules.of(_pairs(setting))
        if self._path:
            self._seen, self._rules = _stamp(self._path), _of_file(self._path)

    def role(self, name: str, groups: Collection[str]) -> Role | None:
        """The role of a person now. A file that cannot be read any more leaves the rules as they were."""
        if self._path:
            try:
                stamp = _stamp(self._path)
                if stamp != self._seen:
                    self._rules, self._seen = _of_file(self._path), stamp
            except SettingError as error:
                LOG.error("the roles stay as they were: %s", error)
        return self._rules.role(name, groups)


def _pairs(text: str) -> list[tuple[str, str]]:
    found = []
    for part in text.split(","):
        who, sign, word = part.strip().rpartition("=")
        if part.strip():
            if not sign:
                raise _problem(f"{part.strip()!r} is not WHO=ROLE, and not the path of a .toml file")
            found.append((who.strip(), word.strip()))
    return found


def _of_file(path: Path) -> Rules:
    try:
        table = tomllib.loads(path.read_bytes()[:MAX_FILE].decode())
    except (OSError, ValueError, RecursionError) as error:
        raise _problem(f"{path} cannot be read: {error}") from error
    roles = table.get("roles")
    if set(table) != {"roles"} or not isinstance(roles, dict):
        raise _problem(f"{path} must hold one table [roles], with a list of people per role")
    pairs = []
    for word, people in roles.items():
        if word not in ROLES:
            raise _problem(f"{path}: {word!r} is not a role; the roles are {', '.join(ROLES)}")
        if not isinstance(people, list) or not all(isinstance(each, str) for each in people):
            raise _problem(f"{path}: {word} must be a list of names")
        pairs += [(each, word) for each in people]
    return Rules.of(pairs)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise _problem(f"{path} cannot be read: {error.strerror}") from error
    return found.st_mtime_ns, found.st_size


def _key(who: str) -> str:
    """Groups are compared as they are written; ASCII names and domains in any case."""
    return who if who.startswith(GROUP) else identity(who)


def _problem(text: str) -> SettingError:
    return SettingError({_SETTING: text})
