"""The row of `plan doctor` about policy.toml."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, about
from plansurvive.features.policy.policy_file import file_of, policy_of
from plansurvive.plans.text.lists import number_of
from plansurvive.runtime.settings import Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """How many rules there are, or what is wrong with the file; nothing without one."""

    def look() -> tuple[str, str]:
        policy = policy_of(settings)
        if policy is None:
            return "", ""
        count = len(policy.rules)
        return f"{file_of(settings).name}: {number_of(count, 'rule')}", ""

    return about("policy", look)
