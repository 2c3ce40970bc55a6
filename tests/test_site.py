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


def build(settings: Path) -> subprocess.CompletedProcess[str]:
    """Run mkdocs."""
    program = shutil.which("mkdocs", path=str(Path(sys.executable).parent))
    assert program
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [program, "build", "--strict", "--config-file", str(settings)]
    return subprocess.run(command, capture_output=True, text=True, env=environ, check=False)


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


@pytest.mark.slow
@pytest.mark.sampled
async def test_the_site_builds_without_a_warning_and_is_readable_on_a_phone(tmp_path: Path, chromium: Browser) -> None:
    assert Stage(ROOT, tmp_path / "source").write() == []
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    settings |= {"docs_dir": str(tmp_path / "source"), "site_dir": str(tmp_path / "site")}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(settings))
    built = build(tmp_path / "mkdocs.yml")
    assert built.returncode == 0, built.stderr
    site = Starlette(routes=[Mount("/", StaticFiles(directory=tmp_path / "site", html=True))])
    async with served(site) as origin:
        for size in (PHONE, DESK):
            async with opened(chromium, size) as page:
                seen = watch(page)
                for path in ("/index.html", "/docs/plan-files.html", "/docs/settings.html", "/docs/recipes.html"):
                    await page.goto(origin + path)
                    assert await overflow(page) == 0, path
                assert seen.foreign(origin) == []
                assert [each for each in await problems(page) if "critical" in str(each)] == []
