"""Reads `quotas.toml`: how many plans at a time may run that have a label.

    [labels]
    customer = 3             # each value of the label `customer` apart
    "customer=acme" = 10     # this one may have more
    "team=nightly" = 1

There is one file, the operator's, in the state directory. A worker reads it when it starts, and a plan keeps the quotas
that it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from plansurvive.features.quotas.model import LABEL, MAX_PLANS
from plansurvive.plans.model import Value
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.toml_file import read_text
from plansurvive.runtime.toml_shape import shaped

FILE = "quotas.toml"
"""Name of the file in the state directory."""
_SETTING = "PLANS_STATE_DIR"

_Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}(=.+)?$", max_length=LABEL)]


class _File(Value):
    """The content of a quotas.toml."""

    labels: dict[_Label, Annotated[int, Field(ge=1, le=MAX_PLANS, strict=True)]] = Field(
        default_factory=dict, max_length=1_000
    )


def file_of(settings: Settings) -> Path:
    """Where the quotas are read from."""
    return settings.state_dir / FILE


def read_quotas(settings: Settings) -> Mapping[str, int]:
    """How many plans at a time by `name` or `name=value`; none if there is no file. Raises SettingError."""
    path = file_of(settings)
    text = read_text(path, _SETTING, is_named=False, may_do="let no plan start, or too many at a time")
    return {} if text is None else shaped(_File, text, path, _SETTING).labels
