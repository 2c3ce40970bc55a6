"""Polling: the first true value, a last look at the deadline, errors passed on."""

from __future__ import annotations

import pytest

from runtime.until import until


async def test_the_first_true_value_is_returned() -> None:
    values = iter([0, None, "", 7, 8])
    assert await until(lambda: next(values), every=0) == 7
    assert next(values) == 8


async def test_an_async_look_is_awaited() -> None:
    values = iter([0, 3])

    async def look() -> int:
        return next(values)

    assert await until(look, every=0) == 3


async def test_there_is_a_look_however_short_the_time() -> None:
    assert await until(lambda: True, seconds=0)


async def test_a_condition_that_stays_false_times_out() -> None:
    with pytest.raises(TimeoutError, match="not within"):
        await until(lambda: False, seconds=0.02, every=0.01)


async def test_an_error_of_the_look_ends_the_wait() -> None:
    def look() -> bool:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await until(look)
