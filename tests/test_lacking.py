"""A test that cannot run here is skipped; where .ci/run has installed what it needs, it fails."""

from __future__ import annotations

import pytest

from tests.lacking import end


@pytest.mark.parametrize(
    ("what", "environ", "ends"),
    [
        ("bwrap", {"CI": "true"}, pytest.fail.Exception),
        ("bwrap", {}, pytest.skip.Exception),
        ("landlock", {"CI": "true"}, pytest.skip.Exception),
    ],
)
def test_what_is_installed_for_ci_may_not_be_missing_there(
    what: str, environ: dict[str, str], ends: type[BaseException]
) -> None:
    with pytest.raises(ends, match="not here"):
        end(what, f"{what} is not here", environ)
