"""The web page as a person sees it: `plan web` in a process of its own, and pictures of its pages."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize

DESK: ViewportSize = {"width": 1200, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}


@contextmanager
def served(directory: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """The page's secret link, while it is served."""
    with subprocess.Popen(
        ["plan", "web", "--port", "0"], cwd=directory, env=environ, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            for row in process.stdout or ():
                if found := re.search(r"http://\S+", row):
                    yield found[0]
                    return
            raise RuntimeError("plan web ended without a link")
        finally:
            process.terminate()


def shoot(browser: Browser, link: str, path: str, to: Path, size: ViewportSize, *, dark: bool) -> None:
    """Save what a window of this size shows of a page once it is quiet."""
    context = browser.new_context(
        viewport=size, color_scheme="dark" if dark else "light", reduced_motion="reduce", has_touch=size == PHONE
    )
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("main")
    page.goto(link.split("/?")[0] + path)
    page.wait_for_selector("main")
    page.wait_for_timeout(1_500)
    page.screenshot(path=to)
    context.close()
