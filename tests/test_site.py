"""The documents as a site: every page is in it, every link works, nothing comes from elsewhere, a phone shows it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.async_api import Browser
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from scripts.llms_txt import text
from scripts.search_entries import COMMANDS, anchored, with_entries
from scripts.site import Stage
from tests.apps.web.browser import DESK, PHONE, chromium, opened, overflow, problems, served, watch

__all__ = ["chromium"]
ROOT = Path(__file__).parent.parent


def pages(section: object) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(section, str):
        yield section
    for part in section if isinstance(section, list) else section.values() if isinstance(section, dict) else ():
        yield from pages(part)


def built(folder: Path, *, sources: bool) -> Starlette:
    """The site, built without a warning. `sources`: with a page for each file of the repository that is linked."""
    assert Stage(ROOT, folder / "source").write() == []
    if not sources:
        shutil.rmtree(folder / "source" / "source")
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    settings |= {"docs_dir": str(folder / "source"), "site_dir": str(folder / "site")}
    settings["hooks"] = [str(ROOT / hook) for hook in settings["hooks"]]
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    program = shutil.which("mkdocs", path=str(Path(sys.executable).parent))
    assert program
    command = [program, "build", "--config-file", str(folder / "mkdocs.yml")]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    warnings = [line for line in done.stderr.splitlines() if "WARNING" in line and (sources or "source/" not in line)]
    assert (done.returncode, warnings) == (0, []), done.stderr
    return Starlette(routes=[Mount("/", StaticFiles(directory=folder / "site", html=True))])


@pytest.mark.slow
@pytest.mark.sampled
def test_what_llms_are_told_is_made_of_the_documents_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    found = (ROOT / "docs" / "llms.txt").read_text()
    assert found == text(ROOT), "run: python -m scripts.llms_txt"
    assert found.startswith("# Plans that survive\n\n> A durable plan runner")
    links = re.findall(r"\]\(([^)#]+)", found)
    assert len(links) > 20
    assert all((ROOT / "docs" / link).exists() for link in links if not link.startswith("http"))
    Stage(ROOT, tmp_path / "site").write()
    of_site = re.findall(r"\]\(([^)#]+)", (tmp_path / "site" / "llms.txt").read_text())
    of_pages = [tmp_path / "site" / link.replace(".html", ".md") for link in of_site if not link.startswith("http")]
    assert all(page.exists() for page in of_pages)


def test_every_page_is_in_the_navigation_and_no_link_leads_nowhere(tmp_path: Path) -> None:
    assert Stage(ROOT, tmp_path / "site").write() == []
    staged = {
        path.relative_to(tmp_path / "site").as_posix()
        for path in (tmp_path / "site").rglob("*.md")
        if not path.relative_to(tmp_path / "site").as_posix().startswith("source/")
    }
    navigation = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert sorted(navigation) == sorted(staged)


def test_a_link_that_leads_nowhere_is_named_with_its_page(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(
        "[a](docs/a.md#x) [b](gone.md) [c](https://c.example)\n```\n[d](gone.txt)\n```\n"
    )
    (tmp_path / "docs/a.md").write_text("[home](../README.md) [code](../tool.py) [all](../lib)\n")
    (tmp_path / "tool.py").write_text("print('```')\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/one.txt").write_text("1")
    assert Stage(tmp_path, tmp_path / "site").write() == ["README.md: gone.md"]
    assert "[a](docs/a.md#x)" in (tmp_path / "site/index.md").read_text()
    assert (tmp_path / "site/docs/a.md").read_text() == (
        "[home](../index.md) [code](../source/tool.py.md) [all](../source/lib.md)\n"
    )
    assert "````python\nprint('```')\n````" in (tmp_path / "site/source/tool.py.md").read_text()
    assert "[one.txt](lib/one.txt.md)" in (tmp_path / "site/source/lib.md").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Starlette:
    """The whole site: a thousand of its pages show files of the repository."""
    return built(tmp_path_factory.mktemp("site"), sources=True)


@pytest.mark.slow
async def test_the_site_is_readable_on_a_phone(site: Starlette, chromium: Browser) -> None:
    async with served(site) as origin:
        for size in (PHONE, DESK):
            async with opened(chromium, size) as page:
                seen = watch(page)
                for path in (
                    "/index.html",
                    "/docs/plan-files.html",
                    "/docs/reference/settings.html",
                    "/docs/recipes.html",
                ):
                    await page.goto(origin + path)
                    assert await overflow(page) == 0, path
                assert seen.foreign(origin) == []
                assert [each for each in await problems(page) if "critical" in str(each)] == []


REFERENCE = {name: (ROOT / "docs/reference" / name).read_text() for name in ("errors.md", "settings.md", "commands.md")}
NAMES = {
    "errors": re.findall(r"^\| `([A-Z_0-9]+)` \|", REFERENCE["errors.md"], re.MULTILINE),
    "settings": re.findall(r"^\| `([A-Z_0-9]+)` \|", REFERENCE["settings.md"], re.MULTILINE),
    "commands": re.findall(r"^## `(plan [a-z-]+(?: [a-z-]+)*)", REFERENCE["commands.md"], re.MULTILINE),
}
"""What people look up, by the page of the reference that has it."""
SOME = ("PLAN_CYCLE", "CONFLICT", "PLANS_QUEUES", "plan run", "plan schedule create")
SEARCH = """async (words) => {
  const config = JSON.parse(document.getElementById("__config").textContent);
  const index = await (await fetch("search/search_index.json")).json();
  const worker = new Worker(config.search);
  let reply;
  worker.onmessage = event => reply(event.data);
  const ask = message => new Promise(done => { reply = done; worker.postMessage(message); });
  await ask({type: 0, data: {...index, options: {suggest: false}}});
  const found = {};
  for (const word of words) {
    const answer = await ask({type: 2, data: word});
    found[word] = answer.data.items.length ? answer.data.items[0][0].location : "";
  }
  return found;
}"""
"""What the search of the page, without its window, finds first for each of these."""


def is_place_of(name: str, page: str, place: str) -> bool:
    """Whether a place of the site is that of a name, or, on the same page, of a longer name with the same words."""
    words = [part for part in re.split(r"[ -]", name.lower()) if part != "why"]  # left out by the search, as `the` is
    anchor = place.partition("#")[2].lower()
    return place.startswith(f"docs/reference/{page}.html#") and all(word in anchor for word in words)


async def not_found(site: Starlette, chromium: Browser, names: dict[str, list[str]]) -> dict[str, str]:
    """Of these names by page, those whose own place is not what the search finds first, with what it finds."""
    async with served(site) as origin, opened(chromium, DESK) as page:
        await page.goto(origin + "/index.html")
        found = await page.evaluate(SEARCH, [name for listed in names.values() for name in listed])
    return {
        name: found[name]
        for place, listed in names.items()
        for name in listed
        if not is_place_of(name, place, found[name])
    }


@pytest.mark.slow
@pytest.mark.sampled
async def test_the_search_finds_a_name_where_it_is_explained(tmp_path: Path, chromium: Browser) -> None:
    site = built(tmp_path, sources=False)  # the search leaves the pages of files out
    some = {page: [name for name in SOME if name in listed] for page, listed in NAMES.items()}
    assert sum(map(len, some.values())) == len(SOME)
    assert await not_found(site, chromium, some) == {}


@pytest.mark.slow
async def test_the_search_finds_every_error_code_setting_and_command_first(site: Starlette, chromium: Browser) -> None:
    assert {page: len(listed) > 50 for page, listed in NAMES.items()} == dict.fromkeys(NAMES, True)
    assert await not_found(site, chromium, NAMES) == {}


def test_a_row_of_a_table_is_an_entry_and_a_command_is_called_by_its_words() -> None:
    page = anchored("# Errors\n\n| code | meaning |\n| --- | --- |\n| `BAD_ID` | see [ids](a.md) | `plan list` |\n")
    assert '\n| <a id="BAD_ID"></a>`BAD_ID` | see' in page
    title = "<code>plan edit ID [--set X]</code>"
    index = with_entries({"docs": [{"location": f"{COMMANDS}plan-edit", "title": title}]}, {"errors.html": page})
    command, row = index["docs"]
    assert command["title"] == "<code>plan edit</code>"
    assert (row["location"], row["title"]) == ("errors.html#BAD_ID", "<code>BAD_ID</code>")
    assert row["text"].split() == ["see", "ids", "plan", "list"]
