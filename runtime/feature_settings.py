"""The seam of settings: what a feature declares in `features/NAME/settings.py`.

A field `limits` is the variable `PLANS_LIMITS`, read, checked and shown like the settings of the core; the docstring
below a field is its text in docs/reference. Code of the feature asks for them: `settings.of(LimitSettings)`.

    class LimitSettings(FeatureSettings):
        feature = "limits"
        limits: NamedFile | None = None

    SETTINGS = LimitSettings
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.functional_validators import AfterValidator

from plansurvive.plans.definition.near_names import Hints
from plansurvive.runtime import sides
from plansurvive.runtime.home_paths import home_path

PREFIX = "PLANS_"

NamedFile = Annotated[Path, AfterValidator(lambda path: home_path(path).absolute())]
"""The path of a file, made absolute: background workers run in other directories."""


class FeatureSettings(BaseModel):
    """The settings of one feature. Each has a default, and a name that no other setting has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    feature: ClassVar[str]
    """Name of the feature, as in `features.FEATURES`."""


def kinds_by_name() -> dict[str, type[FeatureSettings]]:
    """What declares each setting of the features, by its name."""
    return {name: side.SETTINGS for side in sides.sides("settings") for name in side.SETTINGS.model_fields}


def left_out() -> list[type[FeatureSettings]]:
    """The settings of features that this program leaves out."""
    return [side.SETTINGS for side in sides.left_out("settings")]


def why_unknown(name: str, known: Collection[str], left_out: Iterable[type[FeatureSettings]]) -> str:
    """What to say of a setting that is not among those known."""
    for kind in left_out:
        if name in kind.model_fields:
            return f"this program does not have the feature it belongs to, {kind.feature}; remove the setting"
    near = Hints().near(name, known)
    return f"unknown setting; {f'did you mean {PREFIX}{near.upper()}?' if near else 'remove it, or correct its name'}"
