"""The row of `plan doctor` about quotas.toml."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, about
from plansurvive.features.quotas.quotas_file import FILE, read_quotas
from plansurvive.plans.text.lists import number_of
from plansurvive.runtime.settings import Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """How many labels have a quota, or what is wrong with the file; nothing without one."""

    def look() -> tuple[str, str]:
        named = read_quotas(settings)
        return f"{FILE}: {number_of(len(named), 'label')} with a quota of plans" if named else "", ""

    return about("quotas", look)
