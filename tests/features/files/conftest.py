"""Attempts of calls, as the tests of the tools make them."""

from __future__ import annotations

from tests.activities.conftest import attempts

__all__ = ["attempts"]
