"""The row of `plan doctor` about the user service."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.apps.service.install import Service
from plansurvive.client.doctor import Finding, Verdict
from plansurvive.runtime.settings import Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """Whether the service is as it was installed, or that there is none."""
    state = Service(settings, environ).state()
    verdict = Verdict.GOOD if state.is_good else Verdict.WARNING
    return [Finding(subject="service", verdict=verdict, text=state.text)]
