"""The settings of coding agents: where `agents.toml` is, and where they have their homes."""

from __future__ import annotations

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile


class CodingAgentSettings(FeatureSettings):
    """Settings of coding agents."""

    feature = "coding_agents"

    agents: NamedFile | None = None
    """File with the coding agents (docs/coding-agents.md) that plans may use; default: `agents.toml` in the state
    directory, if there is one."""
    agents_home: NamedFile | None = None
    """Directory in which each coding agent without a `home` of its own has one, and keeps its sessions; workers that
    share it load each other's; default: `agents` in the cache directory."""


SETTINGS = CodingAgentSettings
