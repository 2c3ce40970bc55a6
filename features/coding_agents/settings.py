"""The setting of coding agents: where `agents.toml` is."""

from __future__ import annotations

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile


class CodingAgentSettings(FeatureSettings):
    """Settings of coding agents."""

    feature = "coding_agents"

    agents: NamedFile | None = None
    """File with the coding agents (docs/coding-agents.md) that plans may use; default: `agents.toml` in the state
    directory, if there is one."""


SETTINGS = CodingAgentSettings
