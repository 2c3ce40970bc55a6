"""A Run as text, and back; the garbage collector is as it was afterwards."""

from __future__ import annotations

import gc

import pytest
from pydantic import ValidationError

from plansurvive.plans.run import gc_disabled, run_of, text_of
from tests.plans.views.test_text import pipeline


def test_a_run_comes_back_from_its_text_as_it_was() -> None:
    run = pipeline().run
    assert run_of(text_of(run)) == run
    assert run_of(text_of(run).encode()) == run


def test_the_collector_rests_while_a_run_is_read_and_no_longer() -> None:
    assert gc.isenabled()
    with gc_disabled():
        assert not gc.isenabled()
        with gc_disabled():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValidationError):
        run_of("{}")
    assert gc.isenabled()
