"""What an edit of a big loop costs: how often the tree of all its steps is built, and how many steps are copied."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import pytest

from plansurvive.plans.flow.outline import Outline
from plansurvive.plans.model import Step
from tests.plans.editing.changing import begun, change, setting

ITEMS = [f"{number}.png" for number in range(60)]


@contextmanager
def counting(*functions: Callable[..., Any]) -> Iterator[Counter[CodeType]]:
    """Counts the calls of functions."""
    wanted, found = {function.__code__ for function in functions}, Counter[CodeType]()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in wanted:
            found[frame.f_code] += 1

    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("place", ["resize.thumb", "resize[7.png].thumb"])
def test_an_edit_builds_the_tree_once_to_check_it_and_once_to_put_it_into_effect(place: str) -> None:
    played = begun(*ITEMS)
    with counting(Outline.__init__, Step.model_copy) as calls:
        change(played, setting(place, "args.text", "tiny {{item}}"))
    assert calls[Outline.__init__.__code__] == 2
    played.play()
    assert played.run.outline.step("resize[7.png].thumb").args == {"text": "tiny {{item}}"}


def test_an_edit_copies_no_step_that_it_does_not_reach() -> None:
    played = begun(*ITEMS)
    with counting(Step.model_copy) as calls:
        change(played, setting("resize[7.png].thumb", "args.text", "tiny {{item}}"))
    assert calls[Step.model_copy.__code__] < len(ITEMS)
