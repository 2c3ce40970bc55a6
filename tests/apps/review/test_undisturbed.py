"""A key that is pressed again while its action is under way: the action goes on, and happens once."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from plansurvive.apps.review.undisturbed import undisturbed
from tests.kit.waiting import until


class Sender(App[None]):
    """Sends something with s; the answer takes until `answered`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "send"), Binding("o", "other")]

    def __init__(self) -> None:
        super().__init__()
        self.answered = asyncio.Event()
        self.sent, self.told, self.said = 0, list[str](), list[str]()

    def say(self, text: str) -> None:
        """Note what is said."""
        self.said.append(text)

    @undisturbed("send", "It is on its way.")
    async def action_send(self) -> None:
        """Send, and tell what became of it."""
        self.sent += 1
        await self.answered.wait()
        self.told.append("answered")

    @undisturbed("other")
    async def action_other(self) -> None:
        """Something else."""
        self.told.append("other")


async def test_a_second_press_neither_cancels_nor_repeats_what_is_under_way() -> None:
    app = Sender()
    async with app.run_test() as pilot:
        await pilot.press("s", "s", "o")
        await until(lambda: app.told == ["other"], "another key is not held up")
        assert (app.sent, app.said) == (1, ["It is on its way."])
        app.answered.set()
        await until(lambda: app.told == ["other", "answered"], "the first press is told its answer")
        await pilot.press("s")
        await until(lambda: app.sent == 2, "afterwards the key counts again")
