"""The web page in a real browser: how soon a plan of thousands of steps is on the screen, and what looking costs.

    python -m benchmarks.web_page                     a generated plan of 2,122 steps
    python -m benchmarks.web_page WfInstances         the recorded workflow of about that size (benchmarks.real_dags)

`plan web` runs as a process of its own, as users start it; every visit is a new browser context with an empty cache.
The plan still runs while it is looked at: its last step sleeps. Exit code 0, or with `--strict` 1 if a row falls short.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from playwright.async_api import Browser, Page, async_playwright

from benchmarks import graphs, real_dags
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.leaving import leave
from benchmarks.stand import Stand
from benchmarks.tables import Table
from plansurvive.client import runs
from plansurvive.plans.run import Status

STEPS = 2_122
"""Tasks of the biggest recorded workflow that one plan holds."""
PAINT, OPEN, CHANGE, FRAME = 0.3, 1.0, 0.5, 1 / 30
"""Bars, in seconds: first paint, a folded graph on the screen, a change on the screen (p95), a frame while panning."""
VIEWERS = 10
CHANGES = 60
CHAIN = "follow"
OPENING = 15.0
"""Seconds that the page has to open before the changes that are measured."""
PATIENCE = 120.0
_WATCH = """
window.seen = {};
document.addEventListener('graph-drawn', () => {
  window.drawn = (window.drawn || 0) + 1;
  requestAnimationFrame(() => setTimeout(() => { window.drawnAt = performance.now(); }));
});
document.addEventListener('steps', (event) => {
  const { steps } = JSON.parse(event.detail.data);
  requestAnimationFrame(() => setTimeout(() => {
    for (const [id, status] of Object.entries(steps)) window.seen[id + ' ' + status] ??= Date.now();
  }));
});
"""
_FRAMES = """(count) => new Promise((done) => {
  const times = [];
  const next = (now) => { times.push(now); times.length > count ? done(times) : requestAnimationFrame(next); };
  requestAnimationFrame(next);
})"""
_PAINT = "performance.getEntriesByType('paint').find((each) => each.name === 'first-contentful-paint')?.startTime"


async def measure(bench: Bench, steps: Steps | None = None, name: str = "layers of 50") -> list[Table]:
    """Measure opening, moving, unfolding and following; returns one table."""
    steps = steps or graphs.layered(STEPS // 10 if bench.quick else STEPS)
    table = Table(title="The web page", columns=["what", "measured", "bar"], note=f"{len(steps):,} steps: {name}.")
    with tempfile.TemporaryDirectory(prefix="plans-bench-", ignore_cleanup_errors=True) as folder:
        async with Stand(Path(folder) / "stand", durable=True) as stand, _page(stand) as link, _browser() as browser:
            plan = await _standing(stand, steps)
            visits = [await _visit(browser, link, plan) for _ in range(bench.repeats)]
            _opening(table, visits)
            await _moving(browser, link, plan, table)
            await _following(stand, browser, link, steps, table)
            await _looking(stand, browser, link, plan, table)
    return [table]


async def _standing(stand: Stand, steps: Steps) -> str:
    """A plan with all of these steps done, that still runs; returns its id."""
    followed = {name for step in steps for name in step.get("dependsOn", [])}
    ends = [step["id"] for step in steps if step["id"] not in followed]
    last = {"id": "the_end", "tool": "sleep", "args": {"seconds": 3_600}, "dependsOn": ends}
    handle = await stand.start("plan", [*steps, last])
    plan = handle.id
    async with asyncio.timeout(PATIENCE * 3):
        while (await runs.brief(stand.client, plan)).counts.get("completed", 0) < len(steps):
            await asyncio.sleep(0.5)
    return plan.removeprefix("plan-")


async def _visit(browser: Browser, link: str, plan: str) -> tuple[float, float]:
    """Open the plan as somebody who was never there; returns the seconds to the first paint and to the graph."""
    async with _opened(browser, link, plan) as page:
        return await page.evaluate(_PAINT) / 1_000, await page.evaluate("window.drawnAt") / 1_000


def _opening(table: Table, visits: list[tuple[float, float]]) -> None:
    for what, bar, found in (
        ("first paint", PAINT, [paint for paint, _ in visits]),
        ("opens, groups folded", OPEN, [at for _, at in visits]),
    ):
        taken = median(found)
        table.add(what, f"{taken:.2f} s (worst {max(found):.2f})", f"{bar:g} s", reached=taken < bar)


async def _moving(browser: Browser, link: str, plan: str, table: Table) -> None:
    """Drag the picture, unfold a group, and show every step."""
    async with _opened(browser, link, plan) as page:
        table.add("nodes on the screen, folded", f"{await page.locator('[data-node]').count()}", "150")
        median_frame, worst = await _pan(page)
        table.add("a frame while panning, folded", f"{median_frame * 1_000:.0f} ms (p95 {worst * 1_000:.0f})",
                  f"{FRAME * 1_000:.0f} ms", reached=median_frame < FRAME)  # fmt: skip
        began = time.perf_counter()
        await page.locator(".handle").first.focus()
        await page.keyboard.press("Enter")
        await _drawn(page, 2)
        table.add("unfold a group", f"{time.perf_counter() - began:.2f} s", "")
        began = time.perf_counter()
        await page.get_by_role("button", name="Every step").click()
        await _drawn(page, 3)
        table.add("every step, in its unfolded groups", f"{time.perf_counter() - began:.1f} s", "")
        median_frame, worst = await _pan(page)
        table.add("a frame while panning, every step", f"{median_frame * 1_000:.0f} ms (p95 {worst * 1_000:.0f})", "")


async def _pan(page: Page, count: int = 60) -> tuple[float, float]:
    """Drag in circles; returns the median and the 95th percentile of the seconds of a frame."""
    box = await page.locator(".graph svg").bounding_box()
    if box is None:
        raise RuntimeError("the graph is not on the page")
    x, y = box["x"] + box["width"] - 30, box["y"] + box["height"] - 30
    await page.mouse.move(x, y)
    await page.mouse.down()
    frames = asyncio.create_task(page.evaluate(_FRAMES, count))
    turn = 0
    while not frames.done():
        turn += 1
        await page.mouse.move(x - 5 * (turn % 40), y - 3 * (turn % 50))
    await page.mouse.up()
    times = await frames
    taken = [(after - before) / 1_000 for before, after in pairwise(times)]
    return median(taken), quantiles(taken, n=20)[-1]


async def _following(stand: Stand, browser: Browser, link: str, steps: Steps, table: Table) -> None:
    """From the end of a step to its new state on the screen, in a plan of all these steps and a chain behind them.

    Both times are of this machine's clock. The page is opened while the first step of the chain runs.
    """
    chain = _chain(steps)
    handle = await stand.start("plan", [*steps, *chain])
    plan = handle.id.removeprefix("plan-")
    async with asyncio.timeout(PATIENCE * 3):
        while (await runs.brief(stand.client, plan)).counts.get("completed", 0) < len(steps):
            await asyncio.sleep(0.1)
    async with _opened(browser, link, plan) as page:
        await handle.result()
        ended = f"/^{CHAIN}[1-9][0-9]* completed$/.test(each)"
        await _until(page, f"Object.keys(window.seen).filter((each) => {ended}).length >= {CHANGES}")
        seen = await page.evaluate("window.seen")
    view = await runs.show(stand.client, handle.id)
    late = [
        seen[f"{step.id} completed"] / 1_000 - step.ended_at.timestamp()
        for step in view.steps[-CHANGES:]
        if step.ended_at and step.status is Status.COMPLETED
    ]
    p95 = quantiles(late, n=20)[-1]
    told = f"{p95 * 1_000:.0f} ms (median {median(late) * 1_000:.0f})"
    what = f"change of a step to screen, p95 of {len(late)}"
    table.add(what, told, f"{CHANGE * 1_000:.0f} ms", reached=p95 < CHANGE)


def _chain(steps: Steps) -> Steps:
    """Steps that follow each other behind all of these; the first one takes long enough to open the page."""
    followed = {name for step in steps for name in step.get("dependsOn", [])}
    before, chain = [step["id"] for step in steps if step["id"] not in followed], []
    for number in range(CHANGES + 1):
        name = f"{CHAIN}{number}"
        took = 0.3 if number else OPENING
        chain.append({"id": name, "tool": "wait", "args": {"seconds": took}, "dependsOn": before})
        before = [name]
    return chain


async def _looking(stand: Stand, browser: Browser, link: str, plan: str, table: Table) -> None:
    """Ten people look at a plan that does nothing meanwhile."""
    before = await _events(stand, plan)
    async with asyncio.timeout(PATIENCE):
        pages = [_opened(browser, link, plan) for _ in range(VIEWERS)]
        for each in pages:
            await each.__aenter__()
        await asyncio.sleep(5)
        for each in pages:
            await each.__aexit__(None, None, None)
    added = await _events(stand, plan) - before
    table.add(f"events that {VIEWERS} viewers add to the history", str(added), "0", reached=added == 0)


async def _events(stand: Stand, plan: str) -> int:
    described = await stand.client.get_workflow_handle(f"plan-{plan}").describe()
    return described.history_length


@asynccontextmanager
async def _opened(browser: Browser, link: str, plan: str) -> AsyncIterator[Page]:
    """The page of a plan in a browser of its own, once its graph is drawn."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        page = await context.new_page()
        await page.goto(link)
        await page.wait_for_url(re.compile(r"/$"))
        await page.add_init_script(_WATCH)
        await page.goto(f"{link.partition('?')[0]}plans/{plan}")
        await _drawn(page, 1)
        yield page
    finally:
        await context.close()


async def _drawn(page: Page, times: int) -> None:
    await _until(page, f"window.drawn >= {times} && Boolean(window.drawnAt)")


async def _until(page: Page, condition: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await page.evaluate(condition):  # wait_for_function uses eval, which the page's policy forbids
            await asyncio.sleep(0.005)


@asynccontextmanager
async def _browser() -> AsyncIterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        raise RuntimeError("chromium is not installed")
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=program, chromium_sandbox=False)
        yield browser
        await browser.close()


@asynccontextmanager
async def _page(stand: Stand) -> AsyncIterator[str]:
    """`plan web` as a process; gives the link it prints."""
    command = [sys.executable, "-m", "plansurvive", "web", "--port", "0"]
    process = await asyncio.create_subprocess_exec(
        *command, env=stand.environ("plan"), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        yield await _link(process)
    finally:
        process.terminate()
        await process.wait()


async def _link(process: asyncio.subprocess.Process) -> str:
    said = ""
    async with asyncio.timeout(PATIENCE):
        while process.stdout is not None and (row := (await process.stdout.readline()).decode()):
            said += row
            if found := re.search(r"http://\S+key=\S+", row):
                return found[0]
    raise RuntimeError(f"plan web did not serve: {said}")


def _recorded(folder: Path) -> tuple[Steps, str]:
    """The recorded workflow of about STEPS tasks, as steps that do nothing. Raises SystemExit."""
    found: list[Any] = [each for each in real_dags.find(folder) if each.graph is not None]
    if not found:
        sys.exit(f"no instance in {folder} can be read")
    chosen = min(found, key=lambda each: abs(len(each.graph.tasks) - STEPS))
    steps = chosen.graph.steps(0.0, 64)
    return [{**step, "tool": "noop", "args": {"number": at}} for at, step in enumerate(steps)], chosen.name


def main() -> int:
    """Run the measurement; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web_page", description="Measure the web page.")
    parser.add_argument("folder", nargs="?", type=Path, help="a directory of WfCommons instances")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="visits of which the median counts (5)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a row falls short")
    flags = parser.parse_args()
    bench = Bench(repeats=flags.repeats, quick=flags.quick, say=lambda row: print(row, file=sys.stderr, flush=True))
    steps, name = _recorded(flags.folder) if flags.folder else (None, "layers of 50")
    (table,) = asyncio.run(measure(bench, steps, name))
    print(table.markdown())
    return int(flags.strict and table.shorts > 0)


if __name__ == "__main__":
    leave(main())
