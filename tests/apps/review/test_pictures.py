"""Pictures of the review screen as text, stored beside this file, so that a change of the screen shows in a review.

PLANS_NEW_PICTURES=1 writes them again. What colours mean is asserted of a few cells: exact colours come from Textual.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.apps.review.conftest import STEPS, Open, Screen
from tests.nightly import sampled

PICTURES = Path(__file__).parent / "pictures"
Scene = Callable[[Screen], Awaitable[None]]
SIZES = [(80, 24), (120, 40)]
GREEN, YELLOW = (0, 128, 0), (255, 255, 0)


async def at_first(screen: Screen) -> None:
    await screen.until_shown("status       pending")


async def form(screen: Screen) -> None:
    await screen.press("enter")
    await screen.until_shown("ctrl+s save")


async def tools(screen: Screen) -> None:
    await screen.press("a")
    await screen.type("file")
    await screen.until_shown("write_file")


async def waiting(screen: Screen) -> None:
    await screen.press("b")
    await screen.until(lambda: screen.app.view.pending and screen.app.view.counts["completed"] == 4, "it asks")
    await screen.until(lambda: screen.said == "The review is over; the plan runs.", "the remark")
    await screen.press("w")
    await screen.until_shown("awaiting     ? approval")
    screen.app.workers.cancel_all()  # nothing newer is drawn over the view below
    view = screen.app.view
    [item] = view.pending
    # The real ones name a directory of this test.
    scope = {"always": "every call of delete_file in the workspace", "workspace": "/the/workspace"}
    screen.app.take(view.model_copy(update={"pending": [item.model_copy(update=scope)]}))
    await screen.until_shown("in the workspace")


async def refused(screen: Screen) -> None:
    await screen.press("J")
    await screen.until(lambda: screen.said, "the reason")


SCENES = [at_first, form, tools, waiting, refused]


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
@pytest.mark.parametrize("scene", sampled(SCENES, 2), ids=[scene.__name__ for scene in SCENES])
async def test_the_screen_looks_as_it_did(open_screen: Open, scene: Scene, size: Sequence[int]) -> None:
    name = f"{getattr(scene, '__name__', '')}-{size[0]}x{size[1]}"
    async with open_screen(*STEPS, size=tuple(size)) as screen:
        await scene(screen)
        await screen.pilot.pause()
        picture = PICTURES / f"{name}.txt"

        def taken() -> str:
            return screen.text.replace(screen.app.plan, "copy-a-file-000000") + "\n"  # as long as the id

        if os.environ.get("PLANS_NEW_PICTURES"):
            picture.write_text(taken(), encoding="utf-8")
        expected = picture.read_text(encoding="utf-8")
        await screen.until(lambda: taken() == expected, f"{picture.name} looks as it did")


async def test_colours_tell_the_chosen_row_from_others_and_what_is_done_from_what_waits(open_screen: Open) -> None:
    async with open_screen(*STEPS) as screen:

        def is_chosen(row: str) -> bool:
            """Whether it stands on the background of the heading, which is that of the highlighted row."""
            return screen.style_of(row).bgcolor == screen.style_of("Copy a file").bgcolor

        await at_first(screen)
        assert [is_chosen(row) for row in ("1 write", "2 read", "5 remove")] == [True, False, False]
        assert screen.style_of("1 write").bold
        assert len({screen.style_of(row).color for row in ("2 read", "3 copy", "5 remove")}) == 1, "nothing is done yet"
        await refused(screen)
        assert screen.style_of("Not changed").bold
        await waiting(screen)
        assert [is_chosen(row) for row in ("1 write", "2 read", "5 remove")] == [False, False, True]
        assert screen.style_of("approval: y approves").bold
        await screen.choose("read")
        assert [is_chosen(row) for row in ("1 write", "2 read", "5 remove")] == [False, True, False]
        done, asks = (screen.style_of(row).color for row in ("1 write", "5 remove"))
        assert done
        assert asks
        assert (done.get_truecolor(), asks.get_truecolor()) == (GREEN, YELLOW)
