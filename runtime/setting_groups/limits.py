"""The setting of the limits: where `limits.toml` is."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, field_validator

from plansurvive.runtime.home_paths import home_path


class LimitSettings(BaseModel):
    """Settings of rates and concurrency."""

    limits: Path | None = None
    """File with rates and concurrency (docs/limits.md) of tools, queues and the LLM; default: `limits.toml` in the
    state directory, if there is one."""

    @field_validator("limits")
    @classmethod
    def _limits_are_absolute(cls, path: Path | None) -> Path | None:
        return home_path(path).absolute() if path else None
