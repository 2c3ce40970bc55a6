"""The targets of notifications, as the operator wrote them in `notify.toml`; plans only name them.

    [targets.team]
    apprise = "env:TEAM_URL"              # or a list; or the URL itself, or "file:team.url"
    [targets.audit]
    webhook = "https://hooks.example.org/plans"
    key = "file:audit.key"                # whsec_..., as Standard Webhooks write it
    [[default]]                           # for all plans of the workers that read this file
    on = ["failed", "partial"]
    to = "team"

Private addresses are allowed: the file is the operator's, and nothing that a plan says gets into a URL. No error, log
or repr shows a URL or a key.

A plan names targets and no addresses: anyone may write a plan, an LLM included, and it must not choose who receives
what it says.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints

from plansurvive.features.notify.settings import NotifySettings
from plansurvive.plans.definition.near_names import Foreign, Hints
from plansurvive.plans.model import Problem, Value
from plansurvive.plans.model.notify import NAME, NotifyRule, Span, targets_of
from plansurvive.runtime.reference import what_it_leads_to
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.toml_file import read_text, refusal
from plansurvive.runtime.toml_shape import shaped, wrong

FILE = "notify.toml"
"""Name of the file in the state directory, unless PLANS_NOTIFY names another."""
SETTING = "PLANS_NOTIFY"
_URLS = 'a service that Apprise knows is `apprise = "mailtos://..."`, a server of yours `webhook = "https://..."`'
_FOREIGN = Foreign({}, dict.fromkeys(("url", "urls", "uri", "address", "endpoint"), _URLS))
"""Keys in the files of other programs."""
MAY_DO = "have links that decide sent to themselves"
"""What others could do who may change the file."""
KEY_PREFIX = "whsec_"
KEY_BYTES = range(24, 65)
"""Length of a key (Standard Webhooks 1.0: 24 to 64 bytes)."""
_EVENT_BYTES = 262_144

Name = Annotated[str, StringConstraints(pattern=NAME)]


class Target(Value):
    """One target. Exactly one of `apprise` and `webhook` is given."""

    apprise: SecretStr | list[SecretStr] | None = Field(default=None, description="Apprise URLs, or where they are.")
    webhook: SecretStr | None = Field(default=None, description="URL that takes CloudEvents, or where it is.")
    key: SecretStr | list[SecretStr] | None = Field(
        default=None, description="Keys that webhooks are signed with; two while one replaces the other."
    )
    person: str = Field(default="", max_length=200, description="Who decides with a link from a message to it.")
    links: bool | None = Field(
        default=None, description="Messages contain one-time links; those to a webhook only if this is true."
    )
    links_for: Span = Field(default=604_800.0, description="How long a link decides.")
    timeout: float = Field(default=20.0, gt=0, le=60, description="Seconds that one attempt may take.")
    max_bytes: int = Field(default=_EVENT_BYTES, ge=1_000, le=4_194_304, description="Of a webhook's body.")

    @property
    def has_links(self) -> bool:
        """Whether its messages have one-time links."""
        return self.webhook is None if self.links is None else self.links


class Targets(Value):
    """The content of a notify.toml."""

    targets: dict[Name, Target] = Field(default_factory=dict)
    default: list[NotifyRule] = Field(default_factory=list, max_length=20)

    def problems(self, rules: Sequence[NotifyRule]) -> list[Problem]:
        """A warning for each target that rules name and that is not here."""
        unknown = [name for name in targets_of(list(rules)) if name not in self.targets]
        return [
            Problem(code="UNKNOWN_TARGET", field="notify", severity="warning", message=self.unknown(name))
            for name in unknown
        ]

    def unknown(self, name: str) -> str:
        """What to say of a name that no target has."""
        near = Hints().question(name, list(self.targets))
        return f"there is no target '{name}' in the worker's notify.toml{near or '; `plan notify list` shows them'}"


def file_of(settings: Settings) -> Path:
    """Where the targets are read from."""
    return settings.of(NotifySettings).notify or settings.state_dir / FILE


def read_targets(settings: Settings) -> Targets:
    """The targets; none if there is no file and none is named. Raises SettingError."""
    path = file_of(settings)
    found = read_text(path, SETTING, is_named=settings.of(NotifySettings).notify is not None, may_do=MAY_DO)
    return Targets() if found is None else _checked(path, found)


def secret_of(reference: SecretStr, path: Path, environ: Mapping[str, str] = os.environ) -> str:
    """What a reference in the file at `path` means: `env:NAME`, `file:PATH`, or itself. Raises SettingError."""
    text = reference.get_secret_value()
    if not text.startswith(("env:", "file:")) or text.startswith("file://"):
        return text
    try:
        return what_it_leads_to(text, path.parent, environ)
    except ValueError as error:
        raise refusal(SETTING, path, str(error)) from None


def key_bytes(text: str) -> bytes:
    """The bytes of a key as Standard Webhooks write it: base64, with `whsec_` before it. Raises SettingError."""
    try:
        found = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) not in KEY_BYTES:
        text = "a key is `whsec_` and 24 to 64 random bytes in base64: echo whsec_$(openssl rand -base64 32)"
        raise SettingError({SETTING: text})
    return found


def each(given: SecretStr | list[SecretStr] | None) -> list[SecretStr]:
    """One or several values as a list."""
    return given if isinstance(given, list) else [] if given is None else [given]


def _checked(path: Path, text: str) -> Targets:
    found = shaped(Targets, text, path, SETTING, quotes=False, foreign=_FOREIGN)
    problems: list[tuple[tuple[str, ...], str]]
    problems = [(("targets", name), what) for name, target in found.targets.items() if (what := _trouble(target))]
    problems += [(("default",), problem.message) for problem in found.problems(found.default)]
    if problems:
        raise wrong(text, path, SETTING, problems)
    return found


def _trouble(target: Target) -> str:
    if (target.apprise is None) == (target.webhook is None):
        return "name either `apprise` or `webhook`"
    if not all(one.get_secret_value() for one in each(target.webhook) or each(target.apprise) or [SecretStr("")]):
        return "its URL is empty"
    if target.webhook is not None and not each(target.key):
        return "a webhook needs a `key`, so that its receiver can tell who sent it"
    if target.apprise is not None and target.key is not None:
        return "`key` is for webhooks"
    return ""
