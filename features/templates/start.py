"""A start request for a template, given its name."""

from __future__ import annotations

from plansurvive.client.cli.terminal import environment, output
from plansurvive.client.requests.plan_request import Flags, Request, prepared
from plansurvive.features.templates.known import Known, completed, plan_file_of
from plansurvive.plans.definition.checks.will_ask import waived
from plansurvive.plans.text.safe_text import line
from plansurvive.runtime.settings import Settings


def prepare_template(name: str, flags: Flags, settings: Settings) -> Request:
    """Find and check a template, and say which approvals it waives. Raises as `Known.find` and `prepared`."""
    found = Known.of(settings, flags.workspace).find(name)
    request = prepared(plan_file_of(found, settings, flags.workspace), flags, settings)
    waives = waived(request.plan)
    if waives and not flags.yes:
        output.say(f"{found.label} waives the approval of: {line(', '.join(waives))}")
    return request


def names(incomplete: str) -> list[str]:
    """Template names with this prefix, for shell completion."""
    return completed(incomplete, environment.environ())
