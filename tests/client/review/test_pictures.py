"""Pictures of the review screen, kept as text beside this file, so that a change of the screen shows in a review.

PLANS_NEW_PICTURES=1 takes them anew; PLANS_PICTURES=DIR writes them with colours as well, as SVG.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.client.review.conftest import STEPS, Open, Screen

PICTURES = Path(__file__).parent / "pictures"
Scene = Callable[[Screen], Awaitable[None]]
SIZES = [(80, 24), (120, 40)]


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
    await screen.until(lambda: screen.app.view["pending"] and screen.app.view["counts"]["completed"] == 4, "it asks")
    await screen.press("w")
    await screen.until_shown("waits        ? for approval")


async def refused(screen: Screen) -> None:
    await screen.press("J")
    await screen.until(lambda: screen.said, "the reason")


SCENES = [at_first, form, tools, waiting, refused]


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
@pytest.mark.parametrize("scene", SCENES, ids=[scene.__name__ for scene in SCENES])
async def test_the_screen_looks_as_it_did(open_screen: Open, scene: Scene, size: Sequence[int]) -> None:
    name = f"{getattr(scene, '__name__', '')}-{size[0]}x{size[1]}"
    async with open_screen(*STEPS, size=tuple(size)) as screen:
        await scene(screen)
        await screen.pilot.pause()
        directory = os.environ.get("PLANS_PICTURES")
        if directory:
            (Path(directory) / f"{name}.svg").write_text(screen.app.export_screenshot(), encoding="utf-8")
        kept = PICTURES / f"{name}.txt"
        if os.environ.get("PLANS_NEW_PICTURES"):
            kept.write_text(screen.text + "\n", encoding="utf-8")
        assert screen.text + "\n" == kept.read_text(encoding="utf-8")
