"""What the tests of tool servers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.activities.mcp.serving import Serving


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """A place for servers, with an empty workspace."""
    for name in ("workspace", "state"):
        (tmp_path / name).mkdir()
    return Serving(tmp_path)
