"""What the site's search finds by name: each error code, setting and command, before the pages that mention it.

A hook of mkdocs (`mkdocs.yml`), since its search knows pages and headings alone. Of the tables in docs/reference, each
row is an entry of its own, whose name is its title; `anchored` gives the row the anchor that the entry leads to. The
heading of a command loses its arguments there, since the search prefers short titles.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

TABLES = ("docs/reference/errors.md", "docs/reference/settings.md")
COMMANDS = "docs/reference/commands.html#"
INDEX = "search/search_index.json"
BOOST = 3
"""How much more an entry counts than another place with the same words: `CONFLICT` is the code, then the chapter."""
COMMANDS_BOOST = 100
"""`plan` is in every other title."""
_ROW = re.compile(r"^\| `(?P<name>[A-Z][A-Z0-9_]+)` \|", re.MULTILINE)
_ANCHORED = re.compile(r'^\| <a id="(?P<name>\w+)"></a>`\w+` \|(?P<text>.*)\|$', re.MULTILINE)
_ARGUMENTS = re.compile(r"(?<=[a-z])(?: \[?[A-Z<].*)?(?=</code>)")


def anchored(text: str) -> str:
    """A page with an anchor in each row that is an entry: `#PLAN_CYCLE`."""
    return _ROW.sub(lambda row: f'| <a id="{row["name"]}"></a>`{row["name"]}` |', text)


def entries(place: str, text: str) -> list[dict[str, Any]]:
    """The entries of an anchored page's tables, as the site's index has them. `place`: the page on the site."""
    return [
        {
            "location": f"{place}#{row['name']}",
            "title": f"<code>{row['name']}</code>",
            "text": _plain(row["text"]),
            "boost": BOOST,
        }
        for row in _ANCHORED.finditer(text)
    ]


def with_entries(index: dict[str, Any], pages: dict[str, str]) -> dict[str, Any]:
    """The index with the entries of these pages, by their place on the site, and with commands by their words alone."""
    docs = [_command(each) if each["location"].startswith(COMMANDS) else each for each in index["docs"]]
    return index | {"docs": docs + [each for place, text in pages.items() for each in entries(place, text)]}


def on_post_build(config: Any) -> None:
    """Called by mkdocs, once its own search has written the index."""
    file, source = Path(config["site_dir"]) / INDEX, Path(config["docs_dir"])
    pages = {name.replace(".md", ".html"): (source / name).read_text("utf-8") for name in TABLES}
    file.write_text(json.dumps(with_entries(json.loads(file.read_text("utf-8")), pages)), "utf-8")


def _command(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"title": _ARGUMENTS.sub("", entry["title"]), "boost": COMMANDS_BOOST}


def _plain(cells: str) -> str:
    """The text of a row's cells: links as what they show."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)|`|(?<!\\)\|", r"\1", cells).strip()
