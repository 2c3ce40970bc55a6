"""The row of `plan doctor` about notify.toml."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, about
from plansurvive.features.notify.listing import list_targets
from plansurvive.features.notify.targets import FILE
from plansurvive.runtime.settings import Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """The targets, and why nothing reaches one from here; nothing without a file. No message is sent."""

    def look() -> tuple[str, str]:
        targets = list_targets(settings)
        problems = "; ".join(f"{each.name}: {each.problem}" for each in targets if each.problem)
        there = f"{FILE}: {', '.join(each.name for each in targets)}" if targets else ""
        return there, f"{FILE}: {problems}" if problems else ""

    return about("notifications", look)
