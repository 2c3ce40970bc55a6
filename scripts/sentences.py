"""Draws sentences that a user can meet, to be read aloud: `python -m scripts.sentences --seed 1`.

From the messages and help texts in the code and from the documents, code left out. A seed chooses places, not
sentences: after a change, and with `--root` in another tree, the same places are shown as far as they are still there.
`tests/test_words.py` reads the same texts.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("plans", "runtime", "activities", "workflows", "client", "features", "apps")
_NOT_FOR_USERS = ("docs/sources.md", "docs/temporal.md", "docs/faults.md", "docs/reference/measurements.md")


def prose(page: Path) -> str:
    """A page without code, links' targets, measured tables and, of ARCHITECTURE.md, the glossary itself."""
    text = page.read_text()
    for aside in (
        r"<!-- measured: begin -->.*?<!-- measured: end -->",
        r"^```.*?^```$",
        r"`[^`\n]*`",
        r"\]\([^)]*\)",
    ):
        text = re.sub(aside, " ", text, flags=re.MULTILINE | re.DOTALL)
    if page.name == "ARCHITECTURE.md":
        text = re.sub(r"^## Glossary$.*?(?=^## )", "", text, flags=re.MULTILINE | re.DOTALL)
    return " ".join(text.split())


def strings(folder: Path) -> Iterator[str]:
    """The string literals below a folder that read like sentences; what is filled in is `…`."""
    for path in sorted(folder.rglob("*.py")):
        yield from _strings(path)


def _strings(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in docs or id(node) in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values]
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def sentences(root: Path) -> Iterator[tuple[str, str]]:
    """Each sentence with its place: the file, and how many come before it there."""
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    texts = {page: _cells(page) for page in pages if str(page.relative_to(root)) not in _NOT_FOR_USERS}
    texts |= {path: list(_strings(path)) for each in PACKAGES for path in (root / each).rglob("*.py")}
    for path in sorted(texts):
        read = [" ".join(text.split()) for text in texts[path] if re.match(r"[\w`…]", text) and len(text.split()) > 3]
        yield from ((f"{path.relative_to(root)} {number}", text) for number, text in enumerate(read))


def _cells(page: Path) -> list[str]:
    """The sentences of a page, and the cells of its tables, without blocks of code."""
    text = re.sub(r"^```.*?^```$", " ", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.split(r"(?<=[.!?:])\s+|\s*\|\s*|\n\s*\n|\n- ", text)


def drawn(found: Iterable[tuple[str, str]], seed: int, count: int) -> list[tuple[str, str]]:
    """`count` of these sentences, the same for a seed whatever their order."""
    return sorted(found, key=lambda each: sha256(f"{seed} {each[0]}".encode()).hexdigest())[:count]


def main() -> None:
    """Print the sentences."""
    parser = argparse.ArgumentParser(description="Draw sentences that a user can meet.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--root", type=Path, default=ROOT)
    given = parser.parse_args()
    for place, sentence in drawn(sentences(given.root), given.seed, given.count):
        print(f"{place}\n    {sentence[:400]}")


if __name__ == "__main__":
    main()
