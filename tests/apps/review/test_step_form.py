"""The fields of the form of a step, as the terminal draws them."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from plansurvive.apps.review.step_form import FieldRow
from plansurvive.client.forms.flat import flat_fields


@pytest.mark.parametrize("chosen", ["groß", "klein", 7, True])
async def test_a_choice_is_shown_as_chosen_whatever_its_letters(chosen: object) -> None:
    schema = {"properties": {"size": {"enum": ["groß", "klein", 7, True]}}}
    (field,) = flat_fields(schema, {"size": chosen})

    class One(App[None]):
        def compose(self) -> ComposeResult:
            yield FieldRow("size", field)

    async with One().run_test() as pilot:
        row = pilot.app.query_one(FieldRow)
        assert row.text == field.text
        assert field.read(row.text) == chosen
