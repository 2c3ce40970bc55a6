"""Settings of workers with a workspace each: the name of the host, and what a plan's files there may cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.functional_validators import AfterValidator

from plansurvive.runtime.feature_settings import FeatureSettings
from plansurvive.runtime.home_paths import home_path


def _directory(path: Path) -> Path:
    if not home_path(path).is_dir():
        raise ValueError(f"{path} is not a directory; create it or choose another")
    return home_path(path).absolute()


class HostSettings(FeatureSettings):
    """Settings of hosts."""

    feature = "hosts"

    host: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    """Name of this machine among those of its queue: its workers have their own workspace, `PLANS_WORKSPACE`, with
    a directory for each plan; default: workers of a queue share their workspaces."""
    host_patience: float = Field(default=30.0, ge=1, le=86_400, allow_inf_nan=False)
    """Seconds that steps wait for their plan's host before another one takes over."""
    host_seed: Annotated[Path, AfterValidator(_directory)] | None = None
    """Directory whose files a plan begins with; default: an empty directory."""
    checkpoint_mb: int = Field(default=1_024, ge=1, le=1_048_576)
    """Most MB that a plan's files may have together; beyond it a step fails with `CHECKPOINT_TOO_LARGE`."""


SETTINGS = HostSettings
