"""Writes docs/llms.txt, what an LLM is told about the project (llmstxt.org): `python -m scripts.llms_txt`.

It is made of the README's first lines, the section for agents that `plan init` writes, and the documents' own index, so
that it cannot disagree with them. The site has it at its root, with links to its pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = "docs/llms.txt"
SECTION = "client/first_project/files/AGENTS.md.txt"
_ROW = re.compile(r"^- (.+)$")
_TITLE = re.compile(r"^\*\*(.+?)\*\*:?(.*)$", re.DOTALL)
_MARK = re.compile(r"^<!--.*?-->\n", re.MULTILINE)


def text(root: Path) -> str:
    """The file's text."""
    readme = (root / "README.md").read_text("utf-8").split("\n\n")
    summary = " ".join(readme[1].split())
    how = _MARK.sub("", (root / SECTION).read_text("utf-8")).replace("## Plans", "## How to write and run a plan", 1)
    index = (root / "docs" / "README.md").read_text("utf-8").split("\n\n")[1:]
    parts = [readme[0], f"> {summary}", how.strip(), *(_part(" ".join(part.split(" ")).strip()) for part in index)]
    return "\n\n".join(parts) + "\n"


def on_site(found: str) -> str:
    """The text for the root of the site: links lead to its pages."""
    found = re.sub(r"\]\((?!https?:|\.\./)([^)]+)\.md\)", r"](docs/\1.html)", found)
    return re.sub(r"\]\(\.\./([^)]+)\.md\)", r"](\1.html)", found)


def _part(paragraph: str) -> str:
    """A paragraph of the index as a section: its title, and its links as a list."""
    title, rest = _TITLE.fullmatch(paragraph).groups()  # type: ignore[union-attr]
    rows = [row for row in rest.strip().split("\n") if _ROW.match(row)]
    return f"## {title}\n\n" + ("\n".join(rows) if rows else _linked(rest))


def _linked(sentence: str) -> str:
    """The links of a sentence, as a list."""
    return "\n".join(f"- {link}" for link in re.findall(r"\[[^\]]+\]\([^)]+\)", sentence))


def main() -> int:
    """Write the file."""
    (ROOT / FILE).write_text(text(ROOT), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
