"""`make pictures`: a plan is run with everything that can happen in it, and looked at from everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from plansurvive.runtime.settings import Settings
from scripts.pictures.page import DESK, PHONE, served, shoot
from scripts.pictures.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
ID = "weather"


def main() -> int:
    """Take all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="plans-pictures-") as made:
        directory = Path(made)
        environ = _user(directory)
        try:
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=_chromium(), chromium_sandbox=False)
                _demo(browser, directory, environ)
                _terminal(browser, directory, environ)
                _pages(browser, directory, environ)
                browser.close()
        finally:
            _plan(environ, directory, "down")
    for picture in sorted(PICTURES.iterdir()):
        print(f"{picture.relative_to(ROOT)}  {picture.stat().st_size:,} bytes")
    return 0


def _user(directory: Path) -> dict[str, str]:
    """The environment of a user who has the project installed; the workspace has something to do in it."""
    programs = directory / "bin"
    programs.mkdir()
    (programs / "plan").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m plansurvive "$@"\n')
    (programs / "plan").chmod(0o755)
    work = directory / "weather"
    shutil.copytree(ROOT / "examples/map-files/stations", work / "stations")
    (work / "stations/narvik.json").write_text('{"name": "narvik", "degrees": [')
    (work / "page.md").write_text("# The weather\n\nWeek 46: fog everywhere.\n\nAll stations, all days.\n")
    shutil.copyfile(Path(__file__).parent / "plan.yaml", work / "plan.yaml")
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(directory / "home"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PS1": "$ ",
        "PLANS_SERVER": "embedded",
        "PLANS_STATE_DIR": str(directory / "state"),
        "PLANS_CACHE_DIR": str(Settings.read(os.environ).cache_dir),  # the server's program is there
    }


def _terminal(browser: Browser, directory: Path, environ: dict[str, str]) -> None:
    terminal = Terminal("board", directory / "weather", environ)
    try:
        terminal.type(f"clear; plan run plan.yaml --workspace . --id {ID}")
        _draw(browser, terminal, terminal.wait("2 awaiting approval(?s:.)*3 more"), "board")
        terminal.type("q", enter=False)
    finally:
        terminal.close()
    terminal = Terminal("pending", directory / "weather", environ, rows=26)
    try:
        terminal.type(f"clear; plan pending {ID} headline")
        _draw(browser, terminal, terminal.wait("plan approve"), "approval")
    finally:
        terminal.close()


def _demo(browser: Browser, directory: Path, environ: dict[str, str]) -> None:
    """`plan demo` once it is over: the kill, what was counted after it, and the undo."""
    terminal = Terminal("demo", directory / "weather", environ)
    try:
        terminal.type("clear; plan demo")
        while "press Enter" not in terminal.wait("\\[y\\]es|press Enter"):
            terminal.type("y", enter=False)  # again, as a key is ignored right after the question has appeared
        _draw(browser, terminal, terminal.wait("press Enter"), "demo")
        terminal.type("")
        terminal.wait(r"(?m)^\$\s*\Z")
    finally:
        terminal.close()


def _pages(browser: Browser, directory: Path, environ: dict[str, str]) -> None:
    with served(directory / "weather", environ) as link:
        for dark in (False, True):
            shade = "dark" if dark else "light"
            shoot(browser, link, f"/plans/{ID}", PICTURES / f"web-plan-{shade}.png", DESK, dark=dark)
            shoot(
                browser,
                link,
                f"/plans/{ID}/steps/headline/decide",
                PICTURES / f"web-decide-{shade}.png",
                PHONE,
                dark=dark,
            )
        shoot(browser, link, f"/plans/{ID}/draft", PICTURES / "web-draft.png", DESK, dark=False)


def _draw(browser: Browser, terminal: Terminal, screen: str, name: str) -> None:
    """Save what is on a terminal as a picture."""
    page = browser.new_page(viewport={"width": 1400, "height": 1200})
    page.set_content(f"<body style='margin:0'>{terminal.svg(screen, 'plan')}</body>")
    page.locator("svg").first.screenshot(path=PICTURES / f"terminal-{name}.png", omit_background=True)
    page.close()


def _plan(environ: dict[str, str], directory: Path, *command: str) -> None:
    subprocess.run(["plan", *command], env=environ, cwd=directory, check=False, capture_output=True)


def _chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        sys.exit("Chromium is needed for the pictures; install it")
    return found


if __name__ == "__main__":
    sys.exit(main())
