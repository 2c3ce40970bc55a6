"""Views as clients hold them: all that the worker builds is in them, and versions may differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plansurvive.plans.model import Plan
from plansurvive.plans.run import PlanStatus, Run, Status
from plansurvive.plans.views import queries
from plansurvive.plans.views.models import BriefView, PlanView, View
from plansurvive.plans.views.progress.events import EventView
from plansurvive.plans.views.summary import Summary, summary_of
from tests.plans.views.test_golden import GOLDEN, canonical

KINDS: dict[str, type[View]] = {"plan": PlanView, "brief": BriefView, "summary": Summary}
EVERY = [(name, recorded) for recorded in GOLDEN for name in KINDS]
EVERYTHING = next(recorded for recorded in GOLDEN if recorded["name"] == "everything")


@pytest.mark.parametrize(("name", "recorded"), EVERY, ids=lambda part: part if isinstance(part, str) else part["name"])
def test_a_view_that_was_read_gives_back_what_was_sent(name: str, recorded: dict[str, Any]) -> None:
    sent, kind = recorded[name], KINDS[name]
    assert canonical(kind.read(sent).to_json()) == canonical(sent)
    assert canonical(kind.read(json.dumps(sent).encode()).to_json()) == canonical(sent), "from text"


@pytest.mark.parametrize("recorded", GOLDEN, ids=lambda recorded: str(recorded["name"]))
def test_the_models_know_every_key_that_is_built(recorded: dict[str, Any]) -> None:
    run = Run.model_validate(recorded["run"])
    PlanView.model_validate(queries.view(run, []), extra="forbid")
    BriefView.model_validate(queries.view(run, [queries.BRIEF]), extra="forbid")
    Summary.model_validate(summary_of(run).to_json(), extra="forbid")
    for sent in queries.events(run, []):
        assert canonical(EventView.model_validate(sent, extra="forbid").to_json()) == canonical(sent)


def test_a_view_has_every_field_of_a_plan() -> None:
    assert Plan.model_fields.keys() <= PlanView.model_fields.keys()


def strange(data: Any) -> Any:
    """The data with an unknown field in every object that has fields; not in those whose keys are names."""
    if isinstance(data, list):
        return [strange(each) for each in data]
    if not isinstance(data, dict):
        return data
    named = ("args", "asked", "value", "inputs", "counts", "tokens", "claim", "byStep", "byModel", "step_files")
    found = {name: value if name in named else strange(value) for name, value in data.items()}
    return found if all(name.isdigit() for name in found) and found else found | {"unheardOf": 1}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_fields_of_a_newer_worker_are_ignored(name: str, kind: type[View]) -> None:
    sent = EVERYTHING[name]
    found = strange(sent)
    assert canonical(found).count("unheardOf") >= 5
    assert canonical(kind.read(found).to_json()) == canonical(sent)
    assert canonical(kind.read(json.dumps(found).encode()).to_json()) == canonical(sent)


def test_what_an_older_worker_does_not_send_has_a_default() -> None:
    step = {"id": "a", "tool": "note"}
    view = PlanView.read({"id": "p", "status": "running", "steps": [step]})
    assert (view.seq, view.pending, view.counts, view.agent) == (0, [], {}, None)
    assert (view.steps[0].status, view.steps[0].needs, view.steps[0].result) == (Status.PENDING, [], None)
    assert BriefView.read({"id": "p", "status": "running", "steps": [step]}).steps[0].seq == 0
    assert Summary.read({"planId": "p", "status": "completed"}).status is PlanStatus.COMPLETED
