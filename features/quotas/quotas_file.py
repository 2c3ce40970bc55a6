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

from pydantic import Field, StringConstraints, ValidationError

from plansurvive.features.quotas.model import LABEL, MAX_PLANS
from plansurvive.plans.definition.plain_words import in_plain_words
from plansurvive.plans.model import Value
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.toml_file import read_toml, refusal

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
    found = read_toml(path, _SETTING, is_named=False, may_do="let no plan start, or too many at a time")
    try:
        return {} if found is None else _File.model_validate(found).labels
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, each['loc']))}: {in_plain_words(str(each['msg']))}" for each in error.errors()]
        raise refusal(_SETTING, path, "; ".join(wrong[:10])) from None
