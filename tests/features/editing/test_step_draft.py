"""A step being edited: what is changed, and that nothing typed is lost when others edit too."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.local_tools import known_tools
from plansurvive.features.editing.step_draft import Draft, Unwritable, new_step
from plansurvive.plans.editing.edits import AddStep, SetField
from plansurvive.plans.run import Status
from plansurvive.plans.views.models import StepView
from plansurvive.runtime.settings import Settings

SPECS = known_tools(Settings.read({}))
STEP = StepView(id="w", tool="write_file", args={"path": "a", "content": "x"}, depends_on=["b"])


def draft(**more: Any) -> Draft:
    return Draft(STEP, 1, SPECS["write_file"], **more)


def texts(found: Draft, **typed: str) -> dict[str, str]:
    return {key: each.text for key, each in found.fields.items()} | {
        key.replace("_", "."): text for key, text in typed.items()
    }


def test_nothing_typed_changes_nothing() -> None:
    assert draft().edits(texts(draft())) == []


def test_what_was_typed_becomes_edits_of_those_fields_alone() -> None:
    found = draft().edits(texts(draft(), args_path="b", dependsOn="b, c", approval='"always"'))
    assert found == [
        SetField(op="set", step_id="w", path="args", value={"path": "b", "content": "x"}),
        SetField(op="set", step_id="w", path="dependsOn", value=["b", "c"]),
        SetField(op="set", step_id="w", path="requiresApproval", value=True),
    ]


def test_a_new_step_is_added_behind_the_chosen_one() -> None:
    step = new_step("write_file", {"step_1", "w"})
    fresh = Draft(step, 1, SPECS["write_file"], is_new=True, after="w")
    (found,) = fresh.edits(texts(fresh, args_path="b", args_content="y", description="Do it"))
    assert found == AddStep(
        op="add",
        step={"id": "step_2", "tool": "write_file", "args": {"path": "b", "content": "y"}, "description": "Do it"},
        after="w",
    )


def test_every_field_that_cannot_be_read_is_named() -> None:
    step = STEP.model_copy(update={"tool": "sleep", "args": {"seconds": 1}})
    found = Draft(step, 1, SPECS["sleep"])
    with pytest.raises(Unwritable) as caught:
        found.edits(texts(found, args_seconds="soon"))
    assert set(caught.value.reasons) == {"args.seconds"}


def test_a_newer_version_fills_what_nobody_touched_and_keeps_what_was_typed() -> None:
    theirs = STEP.model_copy(update={"args": {"path": "theirs", "content": "new"}})
    newer, merged = draft().newer(theirs, 2, texts(draft(), args_path="mine"))
    assert newer.version == 2
    assert (merged["args.path"], merged["args.content"]) == ("mine", "new")
    assert newer.notes == {"args.path": "now theirs in version 2; saving replaces it with yours"}
    assert newer.edits(merged) == [
        SetField(op="set", step_id="w", path="args", value={"path": "mine", "content": "new"})
    ]


def test_a_change_of_something_the_form_does_not_show_is_none() -> None:
    assert draft().is_same(STEP.model_copy(update={"status": Status.READY}))
    assert not draft().is_same(STEP.model_copy(update={"description": "other"}))
