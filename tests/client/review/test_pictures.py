"""Pictures of the review screen, kept beside this file, so that a change of the screen shows in a review.

Each is kept twice: as text, and as SVG with its colours, which browsers show. PLANS_NEW_PICTURES=1 takes them anew.
"""

from __future__ import annotations

import os
import re
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
    await screen.until(lambda: screen.app.view.pending and screen.app.view.counts["completed"] == 4, "it asks")
    await screen.until(lambda: screen.said == "The plan begins.", "the remark")
    await screen.press("w")
    await screen.until_shown("waits        ? for approval")


async def refused(screen: Screen) -> None:
    await screen.press("J")
    await screen.until(lambda: screen.said, "the reason")


SCENES = [at_first, form, tools, waiting, refused]


def coloured(screen: Screen) -> str:
    """The screen as SVG, without the names and fonts that differ from one picture to the next."""
    picture = re.sub(r"terminal-\d+", "terminal", screen.app.export_screenshot())
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
@pytest.mark.parametrize("scene", SCENES, ids=[scene.__name__ for scene in SCENES])
async def test_the_screen_looks_as_it_did(open_screen: Open, scene: Scene, size: Sequence[int]) -> None:
    name = f"{getattr(scene, '__name__', '')}-{size[0]}x{size[1]}"
    async with open_screen(*STEPS, size=tuple(size)) as screen:
        await scene(screen)
        await screen.pilot.pause()
        taken = {f"{name}.txt": screen.text + "\n", f"{name}.svg": coloured(screen)}
    if os.environ.get("PLANS_NEW_PICTURES"):
        for file, picture in taken.items():
            (PICTURES / file).write_text(picture, encoding="utf-8")
    for file, picture in taken.items():
        assert picture == (PICTURES / file).read_text(encoding="utf-8"), f"{file} looks otherwise"
