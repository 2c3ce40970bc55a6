"""The secrets of agents.toml, for the masks of a worker."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.activities.values.redaction import Fixed
from plansurvive.features.coding_agents.agents_file import read_agents
from plansurvive.runtime.settings import Settings


def masked(settings: Settings, environ: Mapping[str, str]) -> Fixed:
    """What the references of agents.toml lead to now. Raises SettingError for a bad agents.toml."""
    references = [value for agent in read_agents(settings).values() for value in agent.env.values()]
    found = [environ.get(each.removeprefix("env:"), "").strip() for each in references]
    return Fixed([each for each in found if each])
