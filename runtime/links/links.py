"""Issues one-time links and honours them once, with the key and the records of the state directory.

A link is good for one plan, by the first run of its workflow, and for one step, version and digest: what the plan
refuses of a person it refuses of a link. To void all links that are out, `rotate` the key, or remove its file.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime

from plansurvive.runtime.links import token as tokens
from plansurvive.runtime.links.token import Link, LinkRefused
from plansurvive.runtime.links.used import UsedLinks
from plansurvive.runtime.private_files import secret
from plansurvive.runtime.settings import SettingError, Settings

KEY = "links.key"
"""File in the state directory that holds the key, hexadecimal. Whoever can read it can decide."""
SETTING = "PLANS_STATE_DIR"
EXPIRED = "it expired"
"""What is recorded of a link that nothing was decided with in time."""


def _now() -> datetime:
    return datetime.now(UTC)


class Links:
    """The links of one state directory. Keeps nothing in memory: a key that is replaced counts at once."""

    def __init__(self, settings: Settings, now: Callable[[], datetime] = _now) -> None:
        self._settings, self._now = settings, now
        self._used = UsedLinks(settings.state_dir / "links")

    def issue(
        self, plan_id: str, run: str, step_id: str, version: int, digest: str, person: str, expires: datetime
    ) -> str:
        """The token of a new link that approves or denies exactly this call, in the name of `person`.

        `run`: id of the first run of the plan's workflow. `expires`: with a time zone. Put the token into a URL as
        `{PLANS_WEB_URL}/decide/{token}`. Raises SettingError if the key cannot be read or made, ValidationError for
        what a decision cannot name.
        """
        link = Link(
            plan_id=plan_id,
            run=run,
            step_id=step_id,
            version=version,
            digest=digest,
            person=person,
            expires=int(expires.timestamp()),
            id=secrets.token_hex(16),
        )
        return tokens.written(self._key(), link)

    def verify(self, token: str) -> Link:
        """The link of a token that may still decide. Raises LinkRefused LINK_INVALID, LINK_EXPIRED or LINK_USED.

        A link that was refused as expired stays so when the clock is set back.
        """
        link, now = tokens.read(self._key(), token), self._now()
        said = self._used.outcome(link)
        if not said and now.timestamp() >= link.expires:
            with suppress(LinkRefused, SettingError), self._used.use(link, now) as record:
                record(EXPIRED)
            said = EXPIRED
        if said == EXPIRED:
            text = f"the link expired on {link.until:%Y-%m-%d %H:%M UTC}; see what the plan awaits: plan pending"
            raise LinkRefused(f"{text} {link.plan_id}", "LINK_EXPIRED")
        if said:
            raise LinkRefused(f"the link has been used: {said}", "LINK_USED")
        return link

    def use(self, link: Link) -> AbstractContextManager[Callable[[str], None]]:
        """Hold a verified link while its decision is sent, and record the outcome: see `UsedLinks.use`."""
        return self._used.use(link, self._now())

    def rotate(self) -> None:
        """Replace the key: every link that is out is void. Raises SettingError."""
        (self._settings.state_dir / KEY).unlink(missing_ok=True)
        self._key()

    def _key(self) -> bytes:
        self._settings.make_state_dir()
        made = secret(self._settings.state_dir / KEY, lambda: secrets.token_hex(32), SETTING, "the links it signs")
        return bytes.fromhex(made)
