"""Markdown and graphs; texts of plans and tools cannot redraw, reflow or break out of anything."""

from __future__ import annotations

import re

import pytest

from plansurvive.plans.activity_io import Return
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.execution.tool_history import note_files
from plansurvive.plans.run import Status
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.plans.views.markdown import Node, code, details, dot, markdown, md, mermaid
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.summary import summary_markdown, summary_of
from plansurvive.plans.views.text import text
from plansurvive.plans.views.views import plan_view
from tests.plans.building import NOW, begun, failed, step
from tests.plans.views.test_text import pipeline


def nodes_of(schedule: Schedule) -> list[Node]:
    return [Node.of(each) for each in PlanView.read(plan_view(schedule.run, schedule)).steps]


HOSTILE = {
    "\x1b[31mred\x1b[0m": r"\u001b[31mred\u001b[0m",
    "\x1b]0;title\x07": r"\u001b]0;title\u0007",
    "\x9b2J": r"\u009b2J",
    "a\rb": r"a\u000db",
    "a\x08\x08b": r"a\u0008\u0008b",
    "a\x00b": r"a\u0000b",
    "a\x7fb": r"a\u007fb",
    "a\x0bb\x0cc": r"a\u000bb\u000cc",
    "\u202egpj.exe": r"\u202egpj.exe",
    "\u2066x\u2069": r"\u2066x\u2069",
    "\u200fx\u200e": r"\u200fx\u200e",
    "\u061cx": r"\u061cx",
    "\ufeffx": r"\ufeffx",
    "a\u2028b\u2029c": r"a\u2028b\u2029c",
    "a\u0085b": r"a\u0085b",
    "x\U000e0041": r"x\ue0041",
    "a\nb\n\nc": "a b  c",
    "a\tb": "a b",
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "[✓] done\n  1: [✓] forged": "[✓] done   1: [✓] forged",
    "ünï ☃ 🎉 日本": "ünï ☃ 🎉 日本",
}


@pytest.mark.parametrize(("given", "shown"), HOSTILE.items())
def test_a_hostile_text_shows_as_what_it_is_on_one_line(given: str, shown: str) -> None:
    assert line(given) == shown
    schedule = hostile(given)
    display = text(schedule.run)
    assert display.splitlines() == [
        *(
            f"Plan: {shown.strip()}" if given.strip() == given else f"Plan: {shown}",
            "=" * 40,
            "Progress: 0/2 (0.0%)",
            "",
        ),
        *("Steps:", f"  0: [✗] {shown}", f"      Notes: {shown}", "      Tools: -", f"      Files: {shown}"),
        *("  1: [ ] b (depends on: [0])", "      Notes: 'a' failed"),
    ]


def hostile(given: str) -> Schedule:
    """A plan in which this text stands wherever one can."""
    schedule = begun(step("a", description=given), step("b", "a"), title=given)
    schedule.start("a", NOW)
    schedule.settle("a", failed(given), NOW)
    note_files(schedule.run, "a", Return(duration=1, wrote={given: None}))
    return schedule


MARKDOWN = {
    "<img src=x onerror=alert(1)>": r"\<img src=x onerror=alert(1)\>",
    "[link](javascript:alert(1))": r"\[link\](javascript:alert(1))",
    "**bold** _it_ `code`": r"\*\*bold\*\* \_it\_ \`code\`",
    "a\n# heading\n| t |": r"a \# heading \| t \|",
    "back\\slash": "back\\\\slash",
    "\x1b[1m\u202e": "\\\\u001b\\[1m\\\\u202e",
    "plain text.": "plain text.",
}


@pytest.mark.parametrize(("given", "shown"), MARKDOWN.items())
def test_markdown_shows_the_marks_of_a_text_as_they_are(given: str, shown: str) -> None:
    assert md(given) == shown.replace(r"\\u", r"\\u")
    for document in documents(hostile(given)):
        assert shown in document
        assert not re.search(r"(?<!\\)<", re.sub("`[^`\n]*`", "", document)), "no HTML outside code"


def documents(schedule: Schedule) -> list[str]:
    run = schedule.run
    return [markdown(run.plan), details(run, schedule), summary_markdown(summary_of(run))]


def test_a_name_with_a_backtick_cannot_end_its_code() -> None:
    assert code("plain/a_b.txt") == "`plain/a_b.txt`"
    assert code("x`<b>") == r"x\`\<b\>"


def test_markdown_lists_the_steps() -> None:
    assert markdown(pipeline().run.plan).splitlines() == [
        *("**Build Data Pipeline**", "", "1. `load` Load CSV data — read\\_file"),
        *(
            "2. `process` Process and save results — run\\_python",
            "3. `report` Generate report — note",
            "",
            "---",
            "",
            "_end_",
        ),
    ]


def test_the_details_say_where_the_plan_stands() -> None:
    schedule = pipeline()
    schedule.ask("report", NOW)
    shown = details(schedule.run, schedule)
    assert "**Build Data Pipeline** · running · 2 completed, 1 awaiting approval" in shown
    assert "Awaiting approval: `report`" in shown
    assert "- [?] `report` Generate report · awaiting approval" in shown


def test_the_details_of_a_big_plan_show_the_steps_that_move() -> None:
    schedule = begun(*(step(f"s{index}") for index in range(500)))
    schedule.start("s444", NOW)
    shown = details(schedule.run, schedule)
    assert "- [>] `s444`" in shown
    assert "… and 460 more" in shown
    assert len(shown.splitlines()) < 60


ODD = [
    'say "hi"',
    "a]b",
    "<b>x</b>",
    "a;b",
    "%%{init: {}}%%",
    "#quot;",
    "&lt;",
    "`md`",
    "back\\",
    "end",
    "a\nb",
    "\u202ex",
    "(x)",
]
MERMAID_NODE = re.compile(r'    s\d+\["[^"<>%`&]*"\](:::[a-z]+)?')
DOT_NODE = re.compile(r'  "(?:[^"\\]|\\.)*" \[label="(?:[^"\\]|\\.)*"\];')


@pytest.mark.parametrize("given", ODD)
def test_graphs_of_odd_labels_and_ids_stay_well_formed(given: str) -> None:
    nodes = [Node(given, given, [], Status.READY), Node("b", given, [given, "gone"])]
    rows = mermaid(nodes).splitlines()
    assert rows[0] == "flowchart TD"
    assert all(MERMAID_NODE.fullmatch(row) for row in rows[1:3])
    assert rows[3:] == ["    s0 --> s1"]
    assert not re.search(r"#(?!\d+;)", rows[1])
    graph = dot(nodes).splitlines()
    assert (graph[0], graph[-1], len(graph)) == ("digraph plan {", "}", 6)
    assert all(DOT_NODE.fullmatch(row) for row in graph[2:4])
    assert re.fullmatch(r'  "(?:[^"\\]|\\.)*" -> "b";', graph[4])


def test_mermaid_colours_what_has_a_status() -> None:
    assert mermaid(nodes_of(pipeline())).splitlines() == [
        *("flowchart TD", '    s0["load: Load CSV data"]:::completed'),
        *('    s1["process: Process and save results"]:::completed', '    s2["report: Generate report"]:::ready'),
        *("    s0 --> s1", "    s1 --> s2", "    classDef completed fill:#bfb"),
    ]


def test_a_quote_and_a_tag_become_entities() -> None:
    nodes = [Node("a", '"<b>#', [])]
    assert mermaid(nodes).splitlines()[1] == '    s0["a: #34;#60;b#62;#35;"]'
    assert dot(nodes).splitlines()[2] == r'  "a" [label="a: \"<b>#"];'


def test_safe_keeps_lines_and_tabs() -> None:
    assert safe("a\n\tb\x1b") == "a\n\tb\\u001b"
    assert safe("\ud800") == "\\ud800"
