"""Settings of encryption: where the key ring is, and whether what is not encrypted is read.

Keys themselves are never settings.
"""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from pydantic import Field
from pydantic.functional_validators import AfterValidator

from plansurvive.runtime.feature_settings import FeatureSettings
from plansurvive.runtime.home_paths import home_path

COMMAND = "command:"


def _source(text: str) -> str:
    """A path, made absolute, or `command:PROGRAM ARGUMENTS`."""
    if not text.startswith(COMMAND):
        return str(home_path(text).absolute())
    if not shlex.split(text.removeprefix(COMMAND)):
        raise ValueError("write command:PROGRAM ARGUMENTS, or the path of a file")
    return text


class KeySettings(FeatureSettings):
    """Settings of encryption."""

    feature = "keys"

    keys: Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_source)] | None = None
    """File with the key ring, or `command:PROGRAM ARGUMENTS` that prints it; for workers and clients; default: nothing
    is encrypted."""
    plain: Literal["read", "refuse"] = "read"
    """`refuse`: payloads that are not encrypted are not read."""


SETTINGS = KeySettings
