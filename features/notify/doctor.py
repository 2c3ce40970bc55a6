"""The row of `plan doctor` about notify.toml."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, Verdict
from plansurvive.features.notify.listing import list_targets
from plansurvive.features.notify.targets import FILE
from plansurvive.runtime.settings import SettingError, Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """The targets, and why nothing reaches one from here; nothing without a file. No message is sent."""
    try:
        targets = list_targets(settings)
    except SettingError as error:
        return [Finding(subject="notifications", verdict=Verdict.BAD, text=error.message)]
    if problems := [f"{each.name}: {each.problem}" for each in targets if each.problem]:
        return [Finding(subject="notifications", verdict=Verdict.WARNING, text=f"{FILE}: {'; '.join(problems)}")]
    text = f"{FILE}: {', '.join(each.name for each in targets)}"
    return [Finding(subject="notifications", verdict=Verdict.GOOD, text=text)] if targets else []
