"""What the spec of a tool says of secrets: those that steps may name in its arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from plansurvive.features.secrets.secrets_file import allowed, read_entries
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings


def described(settings: Settings) -> Callable[[ToolSpec], ToolSpec]:
    """A function that adds the secrets of the settings' secrets.toml to a spec. Raises SettingError."""
    return partial(allowed, entries=read_entries(settings))
