"""The settings of coding agents: where `agents.toml` is, and where they have their homes."""

from __future__ import annotations

from pathlib import Path

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile
from plansurvive.runtime.settings import Settings


class CodingAgentSettings(FeatureSettings):
    """Settings of coding agents."""

    feature = "coding_agents"

    agents: NamedFile | None = None
    """File with the coding agents (docs/coding-agents.md) that plans may use; default: `agents.toml` in the state
    directory, if there is one."""
    agents_home: NamedFile | None = None
    """Directory in which each coding agent without a `home` of its own has one, and keeps its sessions; workers that
    share it load each other's; default: `agents` in the cache directory."""


def homes_folder(settings: Settings) -> Path:
    """Where agents without a `home` of their own have theirs."""
    return settings.of(CodingAgentSettings).agents_home or settings.cache_dir / "agents"


SETTINGS = CodingAgentSettings
