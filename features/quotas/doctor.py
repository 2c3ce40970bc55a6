"""The row of `plan doctor` about quotas.toml."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, Verdict
from plansurvive.features.quotas.quotas_file import FILE, read_quotas
from plansurvive.runtime.settings import SettingError, Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """How many labels have a quota, or what is wrong with the file; nothing without one."""
    try:
        named = read_quotas(settings)
    except SettingError as error:
        return [Finding(subject="quotas", verdict=Verdict.BAD, text=error.message)]
    text = f"{FILE}: {len(named)} label{'s' * (len(named) != 1)} with a quota of plans"
    return [Finding(subject="quotas", verdict=Verdict.GOOD, text=text)] if named else []
