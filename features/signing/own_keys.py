"""The keys that prove who somebody is: a person's own (`person.key`), and that of a web page (`page.key`).

Each is one file of mode 0600 in a state directory: the key in hexadecimal digits, and the name that policy.toml has for
it. `decisions.key` proves the machine alone, as everybody who works there shares it.

A command signs with the person's key once it has asked how the person at its terminal is called (`author`): the key is
not for a page, an MCP server or a worker that run from the same directory. A page signs what comes from its visitors.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from plansurvive.features.policy.model import KEY
from plansurvive.plans.errors import PlanError
from plansurvive.plans.signature import PAGE
from plansurvive.runtime.private_files import exposed
from plansurvive.runtime.settings import SettingError, Settings

Kind = Literal["person", "page"]
_CONTENT = re.compile(r"([0-9a-f]{64}) ([^\x00-\x1f]{1,200})\n?")
_TO_PAGES = ("web", "link")
"""Where people speak whose words a page sends."""


@dataclass(frozen=True)
class Own:
    """A key with the name of its owner."""

    name: str
    key: Ed25519PrivateKey
    kind: Kind

    @property
    def signer(self) -> str:
        """What its signatures name."""
        return PAGE + self.name if self.kind == "page" else self.name

    @property
    def line(self) -> str:
        """Its line in policy.toml, below [people] or [pages]."""
        public = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        name = self.name if re.fullmatch(r"[A-Za-z0-9_-]+", self.name) else json.dumps(self.name, ensure_ascii=False)
        return f'{name} = "{KEY}{base64.b64encode(public).decode()}"'


@dataclass(frozen=True)
class OwnKeys:
    """The keys of a state directory that prove who somebody is, as far as it has them."""

    person: Own | None
    page: Own | None

    def of(self, message: Mapping[str, Any], author: object) -> Own | None:
        """Whose key signs a message of this author; None: neither's."""
        via = message.get("via") or ""
        if via in _TO_PAGES:
            return self.page
        mine = self.person
        return mine if mine is not None and not via and author == mine.name and mine.name in _speaking else None


_speaking: set[str] = set()
"""The person for whom the command of this process speaks."""


def path_of(settings: Settings, kind: Kind) -> Path:
    """The file of a key."""
    return settings.state_dir / f"{kind}.key"


def own_key(settings: Settings, kind: Kind) -> Own | None:
    """The key in the state directory; None if there is none. Raises SettingError for one that proves nothing."""
    path = path_of(settings, kind)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingError({"PLANS_STATE_DIR": f"{path} cannot be read: {error.strerror}"}) from None
    with os.fdopen(descriptor, "rb") as file:
        problem, text = exposed(os.fstat(file.fileno())), file.read(1_000).decode(errors="replace")
    if problem:
        advice = f"remove it, and `plan keys {kind}` makes another, to be listed in policy.toml in its place"
        raise SettingError({"PLANS_STATE_DIR": f"{path} {problem}, so it proves nothing; {advice}"})
    found = _CONTENT.fullmatch(text)
    if found is None:
        raise SettingError({"PLANS_STATE_DIR": f"{path} holds no key; remove it, and `plan keys {kind}` makes one"})
    return Own(found[2], Ed25519PrivateKey.from_private_bytes(bytes.fromhex(found[1])), kind)


def make(settings: Settings, kind: Kind, name: str) -> tuple[Own, bool]:
    """The key under this name, and whether it is new. Raises PlanError if the directory has one of another name."""
    settings.make_state_dir()
    path, text = path_of(settings, kind), f"{Ed25519PrivateKey.generate().private_bytes_raw().hex()} {name}\n"
    if _CONTENT.fullmatch(text) is None or name != name.strip() or name.startswith(("group:", PAGE)):
        problem = f"{name[:50]!r} cannot name a {kind}; write 1 to 200 characters, without `group:` or `{PAGE}`"
        raise PlanError(problem, "BAD_USAGE")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        raise SettingError({"PLANS_STATE_DIR": f"{path} cannot be written: {error.strerror}"}) from None
    else:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    found = own_key(settings, kind)
    if found is None or found.name != name:
        other = found.name if found else "another"
        advice = f"a state directory has one; use another (PLANS_STATE_DIR), or remove the file to give {other} up"
        raise PlanError(f"{path} is the key of {other}; {advice}", "KEY_EXISTS")
    return found, f"{found.key.private_bytes_raw().hex()} {name}\n" == text


def own_keys(settings: Settings) -> OwnKeys:
    """Those of the state directory. Raises SettingError for one that proves nothing."""
    return OwnKeys(own_key(settings, "person"), own_key(settings, "page"))


def has_any(settings: Settings) -> bool:
    """Whether the state directory has one; cheap, as every command asks."""
    return path_of(settings, "person").is_file() or path_of(settings, "page").is_file()


def speak_for(person: Own) -> None:
    """From now on what this process sends in the person's name is signed by their key."""
    _speaking.add(person.name)
