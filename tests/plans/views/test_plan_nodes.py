"""The graph of a plan file: blocks, loops, alternatives and what follows from them are drawn around their steps."""

from __future__ import annotations

from plansurvive.plans.model import Plan
from plansurvive.plans.views.graphs.plan_nodes import plan_nodes
from plansurvive.plans.views.markdown import dot, mermaid

PLAN = Plan.model_validate(
    {
        "steps": [
            {"id": "list", "tool": "list_directory"},
            {
                "id": "work",
                "forEach": "list[*].name",
                "steps": [
                    {"id": "read", "tool": "read_file", "args": {"path": "{{item}}"}},
                    {"id": "save", "tool": "write_file", "args": {"path": "x", "content": "$read"}},
                ],
                "catch": [{"codes": ["NOT_FOUND"], "steps": [{"id": "say", "tool": "note"}]}],
            },
            {
                "id": "pick",
                "switch": [
                    {"when": "work == 'x'", "steps": [{"id": "a", "tool": "note"}]},
                    {"steps": [{"id": "b", "tool": "note"}]},
                ],
            },
            {"id": "pay", "tool": "note", "undo": {"tool": "refund"}, "dependsOn": ["pick"]},
        ],
        "finally": [{"id": "bye", "tool": "note"}],
    }
)


def test_a_plan_file_is_drawn_with_its_blocks() -> None:
    rows = mermaid(plan_nodes(PLAN)).splitlines()
    assert rows == [
        "flowchart TD",
        '    s0["list: list_directory"]',
        '    subgraph s1["work: block, for each of list[*].name"]',
        '        s2["work.read: read_file"]',
        '        s3["work.save: write_file"]',
        "    end",
        '    subgraph s4["work.catch: NOT_FOUND"]',
        '        s5["work.catch.say: note"]',
        "    end",
        '    subgraph s6["pick: choose"]',
        "        subgraph s7[\"pick 1: if work == 'x'\"]",
        '            s8["pick.a: note"]',
        "        end",
        '        subgraph s9["pick 2: otherwise"]',
        '            s10["pick.b: note"]',
        "        end",
        "    end",
        '    s11["pay: note"]',
        '    s12["pay.undo: refund"]',
        '    subgraph s13["finally: whatever happened"]',
        '        s14["finally.bye: note"]',
        "    end",
        *(f"    {edge}" for edge in ("s0 --> s1", "s2 --> s3", "s1 --> s4", "s1 --> s6", "s6 --> s11", "s11 --> s12")),
        *(f"    {edge} --> s13" for edge in ("s4", "s12")),
    ]


def test_in_graphviz_an_edge_ends_at_the_border_of_a_block() -> None:
    text = dot(plan_nodes(PLAN))
    assert "compound=true" in text
    assert '  "list" -> "work.read" [lhead="cluster work"];' in text
    assert '  "work.read" -> "work.save";' in text
    assert '  "pick.a" -> "pay" [ltail="cluster pick"];' in text
    assert text.count("{") == text.count("}")
    assert "compound" not in dot(plan_nodes(Plan.model_validate({"steps": [{"id": "a", "tool": "note"}]})))
