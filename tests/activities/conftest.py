"""What the tests of the tools share."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from tests.activities.attempts import Attempts


@pytest.fixture
def attempts(workspace: Path, state_dir: Path) -> Attempts:
    """Attempts in an empty workspace, approved."""
    return Attempts(workspace, ValueStore(LocalDirectory(state_dir / "values")), Effects.at(state_dir / "effects"))
