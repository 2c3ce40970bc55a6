"""Settings of encryption and secrets: where they are, and whether what is not encrypted is read.

Keys and secrets themselves are never settings.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator
from pydantic.functional_validators import AfterValidator

from plansurvive.runtime.home_paths import home_path

COMMAND = "command:"


def _source(text: str) -> str:
    """A path, made absolute, or `command:PROGRAM ARGUMENTS`."""
    if not text.startswith(COMMAND):
        return str(home_path(text).absolute())
    if not shlex.split(text.removeprefix(COMMAND)):
        raise ValueError("write command:PROGRAM ARGUMENTS, or the path of a file")
    return text


class KeySettings(BaseModel):
    """Settings of encryption and of the secrets that plans name."""

    keys: Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_source)] | None = None
    """File with the key ring, or `command:PROGRAM ARGUMENTS` that prints it; for workers and clients; default: nothing
    is encrypted."""
    plain: Literal["read", "refuse"] = "read"
    """`refuse`: payloads that are not encrypted are not read."""
    secrets: Path | None = None
    """File with the secrets (docs/secrets.md) that plans may name, on each worker that uses them; default:
    `secrets.toml` in the state directory, if there is one."""

    @field_validator("secrets")
    @classmethod
    def _secrets_are_absolute(cls, path: Path | None) -> Path | None:
        return home_path(path).absolute() if path else None
