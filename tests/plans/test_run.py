"""The log of a Run: its kinds never change, and an entry says in fields what its sentence is about."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from plansurvive.plans.log import Entry, LogKind
from plansurvive.plans.run import run_of, text_of
from plansurvive.plans.views.progress.events import events
from tests.plans.views.test_text import pipeline

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)
IN_HISTORIES = (
    *("agent", "approved", "asks", "begun", "budget", "changed", "denied", "edited", "expired", "files_changed", "llm"),
    *("mending", "paused", "recovery", "refused", "remembered", "resumes", "stopped", "task", "unpaused", "void"),
    "warning",
)
"""Kinds that stored histories and records of ended plans have."""


@pytest.mark.parametrize("kind", IN_HISTORIES)
def test_a_kind_of_a_stored_log_is_read_and_written_as_it_was(kind: str) -> None:
    stored = {"seq": 1, "time": "2026-01-20T10:30:00Z", "kind": kind, "text": "as it was", "status": "running"}
    entry = Entry.model_validate_json(json.dumps(stored))
    assert entry.kind == kind
    assert json.loads(entry.model_dump_json(exclude_defaults=True)) == stored


def test_a_kind_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError, match="kind"):
        Entry.model_validate({"seq": 1, "time": NOW, "kind": "pausd", "text": ""})


def test_code_and_subject_of_an_entry_outlive_continue_as_new_and_are_in_its_event() -> None:
    run = pipeline().run
    run.note(LogKind.REFUSED, "REFUSED:NOT_PAUSED unpause: no", NOW, code="NOT_PAUSED", subject="unpause")
    entry = run_of(text_of(run)).log[-1]
    assert (entry.kind, entry.code, entry.subject) == (LogKind.REFUSED, "NOT_PAUSED", "unpause")
    *_, event = events(run, 0, 999)
    assert event["logs"][0]["code"] == "NOT_PAUSED"
    assert json.loads(json.dumps(event["logs"])) == [
        {
            "time": "2026-01-20T10:30:00Z",
            "kind": "refused",
            "text": "REFUSED:NOT_PAUSED unpause: no",
            "code": "NOT_PAUSED",
            "subject": "unpause",
        }
    ]


def test_an_entry_without_them_has_neither_field() -> None:
    run = pipeline().run
    run.note(LogKind.PAUSED, "paused", NOW)
    assert not {"code", "subject"} & set(json.loads(text_of(run))["log"][-1])
