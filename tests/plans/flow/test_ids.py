"""The ids of steps as parts of the ids of activities, which the server bounds."""

from __future__ import annotations

import pytest

from plansurvive.plans.flow.ids import MAX_ACTIVITY_ID, activity_id, call_name, is_step_of, of_call

LONG = f"a[{'x' * 480}].b[{'y' * 480}].c"


@pytest.mark.parametrize(
    ("step_id", "fits"),
    [
        ("write", True), ("resize[cat.png].thumb", True), (LONG, True), (f"{LONG}{'z' * 40}", False),
        ("長" * 332, True), ("長" * 334, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("number", [1, 12])
def test_the_id_of_an_activity_fits_and_names_its_step(step_id: str, fits: bool, number: int) -> None:
    name = activity_id(step_id, lambda found: call_name(found, number))
    assert len(name.encode()) <= MAX_ACTIVITY_ID
    assert (name == call_name(step_id, number)) is fits
    assert is_step_of(step_id, name)
    assert of_call(name)[1] == number
    assert not is_step_of(f"{step_id}2", name)


def test_ids_that_begin_alike_stay_apart() -> None:
    names = {activity_id(f"{LONG}{'z' * 90}{end}", "judge:{}".format) for end in range(20)}
    assert len(names) == 20
