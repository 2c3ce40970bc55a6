"""The setting of the policy: where `policy.toml` is."""

from __future__ import annotations

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile


class PolicySettings(FeatureSettings):
    """Settings of the policy."""

    feature = "policy"

    policy: NamedFile | None = None
    """File with the rules for calls (docs/policy.md); default: `policy.toml` in the state directory, if there is one.
    """


SETTINGS = PolicySettings
