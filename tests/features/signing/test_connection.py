"""The interceptor that signs: of which clients it is, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.runtime.feature import interceptors_of
from plansurvive.runtime.settings import Settings


@pytest.mark.parametrize(
    ("variables", "kinds"),
    [
        ({}, []),
        ({"PLANS_OTEL": "on"}, ["CarriesTrace"]),
        ({"PLANS_DECISIONS": "signed"}, ["Signer"]),
        ({"PLANS_DECISIONS": "signed", "PLANS_OTEL": "on"}, ["CarriesTrace", "Signer"]),
    ],
)
def test_the_interceptor_that_signs_is_the_innermost(
    tmp_path: Path, variables: dict[str, str], kinds: list[str]
) -> None:
    """What another interceptor would change after it was signed would no longer have a good signature."""
    found = interceptors_of(Settings.read({"HOME": str(tmp_path), **variables}))
    assert [type(each).__name__ for each in found] == kinds
