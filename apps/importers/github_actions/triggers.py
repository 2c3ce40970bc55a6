"""What starts a workflow, and what it gives to those that call it."""

from __future__ import annotations

from typing import Any

from plansurvive.apps.importers.common.expressions import NotCarried, jmespath_of
from plansurvive.apps.importers.common.names import id_of
from plansurvive.apps.importers.common.report import Report
from plansurvive.apps.importers.github_actions.context import Scope


def report_triggers(triggers: Any, report: Report) -> None:
    """Report what starts the workflow: a plan has no triggers."""
    events = triggers if isinstance(triggers, dict) else dict.fromkeys(_listed(triggers) or [triggers])
    for event, given in events.items():
        if event == "schedule":
            for number, each in enumerate(_listed(given)):
                cron = each.get("cron") if isinstance(each, dict) else None
                report.note(("on", event, number), "a schedule", f'plan schedule create NAME FILE --cron "{cron}"')
        elif event not in (None, "workflow_dispatch", "workflow_call"):
            report.note(("on", str(event)), f"nothing starts the plan on {event}", "call `plan run` where that happens")


def outputs_of(triggers: Any, scope: Scope) -> dict[str, str]:
    """The outputs of `workflow_call` as those of a plan."""
    called = triggers.get("workflow_call") if isinstance(triggers, dict) else None
    given = called.get("outputs") if isinstance(called, dict) else None
    found = {}
    for name, each in given.items() if isinstance(given, dict) else ():
        place = ("on", "workflow_call", "outputs", name)
        value = each.get("value") if isinstance(each, dict) else None
        try:
            found[id_of(str(name))] = jmespath_of(scope.node(str(value), place))
        except NotCarried as error:
            scope.report.loss(place, str(error), "add it to `outputs`")
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
