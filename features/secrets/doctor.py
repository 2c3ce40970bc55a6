"""The row of `plan doctor` about secrets.toml."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, about
from plansurvive.features.secrets.secrets_file import file_of, read_entries
from plansurvive.plans.text.lists import number_of
from plansurvive.runtime.settings import Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """How many secrets there are, or what is wrong with the file; nothing without one."""

    def look() -> tuple[str, str]:
        count = len(read_entries(settings))
        return f"{file_of(settings).name}: {number_of(count, 'secret')}" if count else "", ""

    return about("secrets", look)
