"""A page as a browser without JavaScript sees it: its text, and its forms with what they would send."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx

Fields = list[tuple[str, str]]


@dataclass
class Form:
    """A form of a page."""

    action: str
    method: str
    fields: Fields = field(default_factory=list)
    buttons: list[dict[str, str]] = field(default_factory=list)

    def value(self, name: str) -> str:
        """The value of a field."""
        return next(value for each, value in self.fields if each == name)

    async def send(self, browser: httpx.AsyncClient, button: str = "", **typed: str) -> httpx.Response:
        """Press a button, given by the beginning of its text. `typed`: texts by name, `.` as `__`."""
        given = {name.replace("__", "."): text for name, text in typed.items()}
        pressed = next((each for each in self.buttons if each["text"].startswith(button)), {"text": ""})
        sent = [(name, value) for name, value in self.fields if name not in given]
        sent += list(given.items()) + ([(pressed["name"], pressed["value"])] if "name" in pressed else [])
        data: dict[str, list[str]] = {}
        for name, value in sent:
            data.setdefault(name, []).append(value)
        return await browser.post(pressed.get("formaction", self.action), data=data)


class Page(HTMLParser):
    """What is on a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.text = ""
        self.html = html
        self._area: str | None = None
        self._button: dict[str, str] | None = None
        self._select = ""
        self.feed(html)

    def form(self, path: str, number: int = 0) -> Form:
        """The form that is sent to this path."""
        return [each for each in self.forms if each.action.endswith(path)][number]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        match tag:
            case "form":
                self.forms.append(Form(found.get("action", ""), found.get("method", "get")))
            case "input" if self.forms and "name" in found:
                kept = found.get("type") not in ("radio", "checkbox") or "checked" in found
                self.forms[-1].fields += [(found["name"], found.get("value", ""))] if kept else []
            case "select":
                self._select = found.get("name", "")
            case "option" if "selected" in found and self._select and self.forms:
                self.forms[-1].fields.append((self._select, found.get("value", "")))
            case "textarea" if self.forms and "name" in found:
                self.forms[-1].fields.append((found["name"], ""))
                self._area = ""
            case "button" if self.forms and "disabled" not in found:
                self._button = {**found, "text": ""}
                self.forms[-1].buttons.append(self._button)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            name, _ = self.forms[-1].fields[-1]
            self.forms[-1].fields[-1] = name, self._area.removeprefix("\n")
            self._area = None
        self._button = None if tag == "button" else self._button

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self._area += data
        if self._button is not None:
            self._button["text"] += data
        self.text += data


async def seen(browser: httpx.AsyncClient, path: str) -> Page:
    """A page that is there."""
    answer = await browser.get(path)
    assert answer.status_code == 200, answer.text
    return Page(answer.text)
