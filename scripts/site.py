"""Stages the documents for mkdocs: `make site` builds build/site from what this writes to build/site-source.

The pages link to plans and source files of the repository. Each file that is linked becomes a page that shows it, and a
directory a page that lists its files, so that every link works without the repository, also from a disk.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path, PurePosixPath

from scripts.llms_txt import FILE, on_site
from scripts.search_entries import TABLES, anchored

ROOT = Path(__file__).resolve().parent.parent
STAGED = "build/site-source"
NAMES = {"README.md": "index.md", "docs/README.md": "docs/index.md"}
"""Pages that have another name on the site."""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".sh": "sh", ".toml": "toml"}
MAX_BYTES = 200_000
"""Size of the largest file that is shown."""
_UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class Stage:
    """The site's source, and the linked files that it needs besides the pages."""

    def __init__(self, root: Path, target: Path) -> None:
        self._root, self._target = root, target
        self._linked: list[str] = []

    def write(self) -> list[str]:
        """Write all pages; returns links that lead nowhere, as `page: link`."""
        shutil.rmtree(self._target, ignore_errors=True)
        dead: list[str] = []
        for page in sorted([*self._root.glob("*.md"), *(self._root / "docs").rglob("*.md")]):
            name = page.relative_to(self._root).as_posix()
            text = self._relinked(name, page.read_text("utf-8"), dead)
            self._put(NAMES.get(name, name), anchored(text) if name in TABLES else text)
        for picture in [each for kind in ("png", "svg", "webp") for each in (self._root / "docs").rglob(f"*.{kind}")]:
            place = self._target / picture.relative_to(self._root)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(picture, place)
        if (self._root / FILE).exists():
            self._put("llms.txt", on_site((self._root / FILE).read_text("utf-8")))
        for path in self._linked:  # grows while directories are listed
            self._put(f"source/{path}.md", _UNSEARCHED + self._shown(path))
        return dead

    def _put(self, name: str, text: str) -> None:
        place = self._target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")

    def _relinked(self, page: str, text: str, dead: list[str]) -> str:
        fences = _FENCE.findall(text)
        parts = _FENCE.split(text)
        told = [_LINK.sub(lambda found: self._link(page, found, dead), part) for part in parts]
        return "".join(part + fence for part, fence in zip(told, [*fences, ""], strict=True))

    def _link(self, page: str, found: re.Match[str], dead: list[str]) -> str:
        place = (self._root / page).parent / found["path"]
        if not place.exists():
            dead.append(f"{page}: {found[0]}")
            return found[0]
        target = place.resolve().relative_to(self._root).as_posix()
        return _relative(NAMES.get(page, page), self._page_of(target)) + (found["anchor"] or "")

    def _page_of(self, target: str) -> str:
        if target.endswith(".md") and ("/" not in target or target.startswith("docs/")):
            return NAMES.get(target, target)
        if target.startswith("docs/"):
            return target  # a picture
        if target not in self._linked:
            self._linked.append(target)
        return f"source/{target}.md"

    def _shown(self, path: str) -> str:
        place = self._root / path
        if place.is_dir():
            inside = [each for each in sorted(place.iterdir()) if not each.name.startswith((".", "__pycache__"))]
            rows = [self._row(path, each.relative_to(self._root).as_posix()) for each in inside]
            return f"# {path}\n\n" + "\n".join(rows) + "\n"
        content = place.read_bytes()
        if len(content) > MAX_BYTES or b"\0" in content:
            return f"# {path}\n\n{len(content):,} bytes; not shown here.\n"
        text = content.decode("utf-8", "replace")
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
        return f"# {path}\n\n{fence}{LANGUAGES.get(place.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"

    def _row(self, directory: str, path: str) -> str:
        return f"- [{PurePosixPath(path).name}]({_relative(f'source/{directory}.md', self._page_of(path))})"


def _relative(page: str, target: str) -> str:
    """The link from one page of the site to another."""
    here, there = PurePosixPath(page).parent.parts, PurePosixPath(target).parts
    same = 0
    while same < min(len(here), len(there) - 1) and here[same] == there[same]:
        same += 1
    return "/".join([".."] * (len(here) - same) + list(there[same:]))


def main() -> int:
    """Stage the pages; exit code 1 names links that lead nowhere."""
    dead = Stage(ROOT, ROOT / STAGED).write()
    for each in dead:
        print(f"leads nowhere: {each}", file=sys.stderr)
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
