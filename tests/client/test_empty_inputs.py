"""An empty text for an input that must be given is taken, with a warning: a script may pass an unset variable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plansurvive.client.requests.plan_request import Flags, prepare
from plansurvive.runtime.settings import Settings

INPUTS = {"version": {"type": "string"}, "note": {"type": "string", "default": "none"}}
LOOK = {"id": "look", "tool": "list_directory", "args": {"path": "{{inputs.version}}"}}


@pytest.mark.parametrize(
    ("given", "named"),
    [(("version=",), ["inputs.version"]), (("version=1", "note="), []), (("version= ",), [])],
    ids=["empty", "with a default", "blank"],
)
def test_only_an_empty_text_without_a_default_is_warned_of(
    given: tuple[str, ...], named: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"inputs": INPUTS, "steps": [LOOK]}))
    flags = Flags(str(tmp_path), yes=False, max_parallel=None, review=False, inputs=given, id=None)
    request = prepare(str(file), flags, Settings.read({"PLANS_STATE_DIR": str(tmp_path / "state")}))
    assert [each.field for each in request.warnings if each.code == "BAD_INPUT"] == named
