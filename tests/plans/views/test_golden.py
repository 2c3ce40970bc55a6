"""The JSON of views, as clients of any version know it: compared with what was recorded before views were typed.

`views.json` is never recorded again. A key that is added later is added to it by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plansurvive.client.feature import read_run
from plansurvive.plans.views import queries
from plansurvive.plans.views.summary import summary_of

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "views.json").read_text(encoding="utf-8"))


def canonical(data: Any) -> str:
    """JSON text in which 5 and 5.0 differ, and an absent key is not a null."""
    return json.dumps(data, ensure_ascii=False, sort_keys=True, indent=1)


@pytest.mark.uses("agents")
@pytest.mark.parametrize("recorded", GOLDEN, ids=lambda recorded: str(recorded["name"]))
def test_a_run_is_shown_as_it_always_was(recorded: dict[str, Any]) -> None:
    run = read_run(recorded["run"])
    shown = {
        "plan": queries.view(run, []),
        "brief": queries.view(run, [queries.BRIEF]),
        "events": queries.events(run, []),
        "summary": summary_of(run).to_json(),
    }
    for name, found in shown.items():
        assert canonical(found) == canonical(recorded[name]), name
