"""The graph in a real browser: readable, usable by keyboard, live, and within the budget of the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import ViewportSize

from plansurvive.apps.web.graph.document import document, document_of_plan
from plansurvive.apps.web.graph.gantt import time_line
from tests.apps.web.browser import PHONE, SCRIPT_BUDGET, SIZES, overflow, problems
from tests.apps.web.graph.conftest import Show
from tests.apps.web.graph.test_gantt import BEGAN, at, ran
from tests.apps.web.graph.views import MAPPED, layered, plan, step, view, written
from tests.kit.waiting import until
from tests.nightly import sampled

MOST_VISIBLE = 150


@pytest.mark.parametrize(("size", "dark"), sampled([(size, dark) for size in SIZES for dark in (False, True)], 1))
async def test_anyone_can_read_the_graph_and_it_asks_nobody_else(show: Show, size: ViewportSize, dark: bool) -> None:
    line = time_line(view([ran("a", 0, 5), ran("b", 5, None)], startedAt=at(0)), BEGAN + timedelta(seconds=9))
    async with show(document(view(MAPPED)), size, dark=dark, line=line) as shown:
        assert await problems(shown.page) == []
        assert await overflow(shown.page) == 0
        assert shown.seen.complaints == []
        assert shown.seen.foreign(shown.origin) == []
        asked = [request.url for request in shown.seen.requests if request.url.endswith("graph.json")]
        assert len(asked) == 1, "what was preloaded is used"
        scripts = await shown.seen.script_bytes()
        assert sum(scripts.values()) < SCRIPT_BUDGET, scripts
        marks = await shown.page.locator(".node.is-failed .mark, .node.is-awaiting .mark").all_text_contents()
        assert {"✗", "?"} <= set(marks)  # never by colour alone


async def test_a_big_plan_opens_at_what_failed_also_inside_an_unfolded_block(show: Show) -> None:
    inner = [written(f"s{number}") for number in range(3)]
    began = [{"id": f"block.s{number}", "tool": "task", "status": "failed"} for number in range(3)]
    inside = {"kind": "block", "total": 3, "began": 3, "counts": {"failed": 3}}
    block = step("block", ["s29"], status="failed", steps=inner, inside=inside, instances=began)
    chain = [written_step(number) for number in range(30)]
    async with show(document(view([*chain, block]))) as shown:
        assert shown.seen.complaints == []
        assert await shown.page.locator("[data-said]").text_content() == ""
        for picture in await shown.page.locator("[data-node].is-failed.is-open .label").all():
            assert await picture.bounding_box() is not None
        await until(lambda: shown.page.locator("[data-node].is-failed").first.is_visible(), "what failed is in sight")


@pytest.mark.parametrize("size", sampled(SIZES, 1))
async def test_a_plan_too_big_for_the_window_opens_readable_at_what_awaits_a_decision(
    show: Show, size: ViewportSize
) -> None:
    steps = [written_step(number) for number in range(30)]
    steps[17] |= {"status": "ready", "awaiting": "approval"}
    steps[3] |= {"status": "failed"}
    async with show(document(view(steps)), size) as shown:
        asks = shown.page.locator("[data-node].is-awaiting .face")
        window = await shown.page.locator(".graph svg").bounding_box()
        await until(lambda: _is_within(asks.bounding_box, window), "the question is in sight")
        under = shown.page.locator("[data-node] .under").first
        assert await under.evaluate("(text) => parseFloat(getComputedStyle(text).fontSize) * text.getCTM().a") >= 10


async def test_a_small_graph_is_as_high_as_its_steps_and_cuts_no_text_of_them(show: Show) -> None:
    label = "Put the headline of the week on a page"  # fits on two lines in the widest fonts as well
    asks = step("first", tool="write_file", description=label, status="ready", awaiting="approval")
    async with show(document(view([asks, step("second-with-a-long-id", ["first"])]))) as shown:
        texts = await shown.page.locator("[data-node] .label, [data-node] .under").all_text_contents()
        assert " ".join(texts[:2]) == label
        assert not [text for text in texts if "…" in text]
        window = await shown.page.locator(".graph svg").bounding_box()
        assert window is not None
        assert window["height"] < 260
        assert await _is_within(shown.page.locator("[data-node]").last.bounding_box, window)


@pytest.mark.slow
async def test_what_goes_wrong_in_the_graph_is_told_in_words_and_the_page_stays_usable(show: Show) -> None:
    found = document(view([step("a")]))
    async with show(found) as shown:
        shown.document.update(seq=9, nodes=None)  # no such document is made
        await shown.patch(9, b="running")
        said = shown.page.locator("[data-said]")
        await until(said.text_content, "the page says so")
        assert await said.text_content() == "The graph could not be drawn. The list of steps below says the same."
        assert await shown.page.locator(".graph.is-busy").count() == 0


async def test_a_step_that_runs_a_plan_shows_how_that_stands_and_leads_to_it(show: Show) -> None:
    counts = {"total": 5, "completed": 2, "failed": 1, "ready": 1, "running": 1}
    child = {
        "planId": "p-child",
        "status": "running",
        "counts": counts,
        "pending": [{"planId": "p-child", "stepId": "b", "path": "sub/b"}],
    }
    async with show(document(view([step("sub", tool="plan", status="running", child=child)]))) as shown:
        card = shown.page.locator("[data-node]")
        assert "running, 2 of 5 done, 1 failed, 1 awaiting a decision" in (await card.text_content() or "")
        assert "is-awaiting" in (await card.get_attribute("class") or "")
        assert await card.locator(".part.is-completed, .part.is-failed, .part.is-awaiting").count() == 3
        await card.locator("a.body").click()
        await shown.page.wait_for_url("**/plans/p-child")


async def test_a_loop_of_many_items_is_one_card_until_it_is_unfolded(show: Show) -> None:
    items = [{"id": f"resize[{name}]", "tool": "shell", "status": "completed"} for name in "abcdefghij"]
    inside = {"kind": "each", "total": 10, "began": 10, "counts": {"completed": 10}}
    async with show(document(view([MAPPED[0], MAPPED[1] | {"instances": items, "inside": inside}]))) as shown:
        assert await shown.page.locator("[data-node]").count() == 2
        await shown.page.locator(".handle").first.click()
        await shown.drawn(2)
        assert await shown.page.locator("[data-node]").count() == 12


async def test_a_plan_of_thousands_of_steps_opens_folded_and_unfolds_by_key(show: Show) -> None:
    async with show(document_of_plan(plan(layered(22, 97)))) as shown:
        nodes, handles = shown.page.locator("[data-node]"), shown.page.locator(".handle")
        before = await nodes.count()
        assert before <= MOST_VISIBLE
        await handles.first.focus()
        await shown.page.keyboard.press("Enter")
        await shown.drawn(2)
        assert await nodes.count() == before + 97
        focused = shown.page.locator(".handle:focus")
        assert await focused.get_attribute("aria-expanded") == "true"
        await shown.page.keyboard.press(" ")
        await shown.drawn(3)
        assert await nodes.count() == before


async def test_a_line_to_a_group_is_left_out_where_a_longer_way_says_it_already(show: Show) -> None:
    first, then = [f"a{at}" for at in range(20)], [f"b{at}" for at in range(20)]
    steps = [written(name) for name in first] + [written(name, first) for name in then]
    steps += [written("end", [*first, *then]), written("last", ["end", "b0"]), written("x"), written("y", ["x"])]
    steps.append(written("z", ["x", "y"]))  # between steps each line is drawn
    async with show(document_of_plan(plan(steps))) as shown:
        lines = await shown.page.locator(".edge").evaluate_all(
            "(all) => all.map(({ edge }) => `${edge.from.label} > ${edge.to.label}`).sort()"
        )
    assert lines == ["19 × b > end", "20 × a > 19 × b", "20 × a > b0", "b0 > end", "b0 > last", "end > last",
                     "x > y", "x > z", "y > z"]  # fmt: skip


@pytest.mark.slow
async def test_every_step_of_a_big_plan_is_shown_in_its_unfolded_groups_and_folded_again(show: Show) -> None:
    async with show(document_of_plan(plan(layered(22, 97)))) as shown:
        nodes = shown.page.locator("[data-node]")
        every = shown.page.get_by_role("button", name="Every step")
        folded, asked = await nodes.count(), len(shown.seen.requests)
        await every.click()
        await shown.drawn(2)
        assert await nodes.count() == folded + 22 * 97
        assert await every.get_attribute("aria-pressed") == "true"
        window = await shown.page.locator(".graph svg").bounding_box()
        for end in (nodes.first, nodes.last):
            assert await _is_within(end.bounding_box, window)
        await every.click()
        await shown.drawn(3)
        assert await nodes.count() == folded
        assert len(shown.seen.requests) == asked
        assert shown.seen.complaints == []


async def test_a_group_is_folded_by_itself_also_while_every_step_is_shown(show: Show) -> None:
    async with show(document_of_plan(plan(layered(4, 40)))) as shown:
        nodes = shown.page.locator("[data-node]")
        await shown.page.get_by_role("button", name="Every step").click()
        await shown.drawn(2)
        before = await nodes.count()
        await shown.page.locator(".handle").first.click()
        await shown.drawn(3)
        assert await nodes.count() == before - 40


async def test_a_change_of_a_step_is_shown_without_another_layout(show: Show) -> None:
    steps = [step("a", status="running"), step("b", ["a"])]
    async with show(document(view(steps))) as shown:
        await shown.page.locator("a.body").first.focus()
        await shown.patch(8, a="completed", b="waiting")
        assert await shown.page.locator(".node.is-completed .mark").text_content() == "✓"
        assert "awaiting a decision" in (await shown.page.locator(".node.is-awaiting").text_content() or "")
        assert await shown.page.evaluate("document.activeElement.closest('[data-node]').node.id") == "a"
        await shown.patch(3, a="running")  # older than what is known
        assert await shown.page.locator(".node.is-completed").count() == 1
        assert await shown.page.evaluate("window.drawn") == 1


@pytest.mark.slow
async def test_steps_that_the_graph_does_not_know_make_it_load_the_plan_again(show: Show) -> None:
    found = document(view([step("a")]))
    async with show(found) as shown:
        shown.document.update(document(view([step("a"), step("b", ["a"])], seq=9)))
        await shown.patch(9, b="running")
        await shown.drawn(2)
        assert await shown.page.locator("[data-node]").count() == 2


async def test_what_plans_contain_is_text_in_the_graph(show: Show) -> None:
    hostile = "</text><script>document.title='x'</script><img src=//evil.example/x>\u202e"
    async with show(document(view([step("a", description=hostile)]))) as shown:
        assert await shown.page.title() == "A plan"
        assert await shown.page.locator("svg script, svg img").count() == 0
        assert "<script>" in (await shown.page.locator(".node title").text_content() or "")
        assert shown.seen.foreign(shown.origin) == []


@pytest.mark.slow
async def test_a_step_leads_to_its_own_page_whatever_its_id(show: Show) -> None:
    loop = [*MAPPED[:1], MAPPED[1] | {"instances": [{"id": "resize[a/b #1?]", "tool": "shell", "status": "failed"}]}]
    async with show(document(view(loop))) as shown:
        links = [await each.get_attribute("href") for each in await shown.page.locator("a.body").all()]
        assert "/plans/p/steps/resize%5Ba%2Fb%20%231%3F%5D" in links


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_picture_moves_by_keys_and_is_not_a_trap_for_the_wheel(show: Show) -> None:
    async with show(document(view([written_step(number) for number in range(12)]))) as shown:
        plane = shown.page.locator(".graph svg > g")

        async def placed() -> str:
            return await plane.get_attribute("transform") or ""

        await until(placed, "the picture is placed")
        first = await placed()
        await shown.page.mouse.move(640, 400)
        await shown.page.mouse.wheel(0, 120)  # the page's own business: the graph has not the focus
        assert await placed() == first
        await shown.page.locator(".graph svg").focus()
        await shown.page.keyboard.press("ArrowRight")
        await until(lambda: _differs(placed, first), "it moved")
        moved = await placed()
        await shown.page.keyboard.press("+")
        await until(lambda: _differs(placed, moved), "it is larger")


async def test_the_time_line_is_loaded_when_it_is_unfolded(show: Show) -> None:
    line = time_line(view([ran("a", 0, 5)], startedAt=at(0), endedAt=at(5), status="completed"), BEGAN)
    async with show(document(view(MAPPED)), line=line) as shown:
        assert await shown.page.locator(".time .bar").count() == 0
        await shown.page.get_by_text("Time line", exact=True).click()
        await until(lambda: shown.page.locator(".time .bar").count(), "the time line is there")
        assert shown.seen.complaints == []


async def test_without_javascript_the_time_line_is_there_and_the_graph_says_where_to_look(show: Show) -> None:
    line = time_line(view([ran("a", 0, 5), ran("b", 5, None)], startedAt=at(0)), BEGAN + timedelta(seconds=9))
    async with show(document(view(MAPPED)), PHONE, line=line, scripts=False) as shown:
        assert await shown.page.locator(".gantt .bar").count() == 2
        assert "The list of steps below says the same" in await shown.page.locator("main").inner_text()
        assert await overflow(shown.page) == 0


def written_step(number: int) -> dict[str, Any]:
    return step(f"s{number}", [f"s{number - 1}"] if number else [])


async def _is_within(box: Callable[[], Awaitable[Any]], window: Any) -> bool:
    found = await box()
    return bool(
        found["x"] >= window["x"]
        and found["x"] + found["width"] <= window["x"] + window["width"]
        and found["y"] >= window["y"]
        and found["y"] + found["height"] <= window["y"] + window["height"]
    )


async def _differs(look: Callable[[], Awaitable[str]], before: str) -> bool:
    return await look() != before
