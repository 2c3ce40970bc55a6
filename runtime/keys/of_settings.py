"""The key ring that the settings name: one per process, shared by connection, storage and codec server."""

from __future__ import annotations

from functools import cache

from plansurvive.runtime.keys.codec import Codec
from plansurvive.runtime.keys.live import LiveRing
from plansurvive.runtime.keys.ring import BadRing
from plansurvive.runtime.keys.source import source_of
from plansurvive.runtime.settings import SettingError, Settings

SETTING = "PLANS_KEYS"


def ring_of(settings: Settings) -> LiveRing | None:
    """The ring; None without PLANS_KEYS. Raises SettingError."""
    return _ring(settings.keys) if settings.keys else None


def codec_of(settings: Settings) -> Codec:
    """The codec of payloads. Raises SettingError."""
    return Codec(ring_of(settings), plain=settings.plain == "read")


@cache
def _ring(text: str) -> LiveRing:
    try:
        return LiveRing(source_of(text))
    except BadRing as error:
        raise SettingError({SETTING: error.message}) from None
