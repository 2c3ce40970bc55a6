"""The steps of a plan as a tree of nodes."""

from __future__ import annotations

from plansurvive.apps.web.graph.tree import Node, tree_of, tree_of_plan
from tests.apps.web.graph.views import MAPPED, plan, step, view, written


def shape(nodes: list[Node] | tuple[Node, ...]) -> list[object]:
    """Ids, with what they need and what is inside."""
    return [(node.id, node.needs, shape(node.inside)) if node.inside else (node.id, node.needs) for node in nodes]


def test_what_is_inside_a_plan_that_runs_is_what_has_begun_and_else_what_is_written() -> None:
    assert shape(tree_of(view(MAPPED))) == [
        ("list", ()),
        ("resize", ("list",), [("resize[b.png]", ()), ("resize[c.png]", ()), ("resize[a.png]", ())]),
        ("publish", ("resize",), [("publish.upload", ()), ("publish.verify", ("publish.upload",))]),
        ("publish.catch", ("publish",), [("publish.catch.say", ())]),
        ("pick", ("list",), [("pick 1", (), [("pick.a", ())]), ("pick 2", (), [("pick.b", ())])]),
    ]


def test_a_plan_file_and_the_same_plan_before_it_begins_are_the_same_graph() -> None:
    steps = [written("a"), {"id": "b", "dependsOn": ["a"], "steps": [written("c"), written("d", ["c"])]}]
    begun = [step("a"), step("b", ["a"], steps=[written("c"), written("d", ["c"])])]
    assert shape(tree_of_plan(plan(steps))) == shape(tree_of(view(begun)))


def test_blocks_inside_loops_are_tied_as_their_steps_are_written() -> None:
    inside = {"kind": "each", "total": 1, "began": 1, "counts": {"running": 1}}
    names = ("work[x]", "work[x].read", "work[x].save", "work[x].catch", "work[x].catch.say")
    found = tree_of(
        view(
            [
                step(
                    "work", forEach=["x"], status="running", inside=inside,
                    steps=[written("read"), written("save", ["read"])], catch=[{"steps": [written("say")]}],
                    instances=[{"id": name, "tool": "task", "status": "running", "kind": "call"} for name in names],
                )
            ]
        )
    )  # fmt: skip
    (loop, caught) = found
    assert caught.id == "work.catch"
    assert shape(loop.inside) == [
        (
            "work[x]",
            (),
            [
                ("work[x].read", ()),
                ("work[x].save", ("work[x].read",)),
                ("work[x].catch", ("work[x].save",), [("work[x].catch.say", ())]),
            ],
        )
    ]


def test_rounds_follow_one_another_and_tasks_of_an_agent_too() -> None:
    rounds = [{"id": f"poll#{number}", "tool": "task", "status": "completed"} for number in (1, 2, 3)]
    tasks = [{"objective": "Look", "status": "done"}, {"objective": "Say", "status": "current"}]
    inside = {"kind": "repeat", "total": 9, "began": 3, "counts": {"completed": 3}}
    poll, agent = tree_of(
        view(
            [
                step("poll", status="running", repeat={"until": "value"}, inside=inside, instances=rounds),
                step("ask", tool="agent", status="running", tasks=tasks),
            ]
        )
    )
    assert [node.needs for node in poll.inside] == [(), ("poll#1",), ("poll#2",)]
    assert [(node.label, node.status, len(node.needs)) for node in agent.inside] == [
        ("Look", "completed", 0),
        ("Say", "running", 1),
    ]


def test_what_closes_a_plan_comes_last() -> None:
    steps = [step("a"), step("b", ["a"])]
    undone = step("a.undo", closes="undo", status="running")
    assert shape(tree_of(view([*steps, undone], **{"finally": [written("bye")]}))) == [
        ("a", ()), ("b", ("a",)), ("a.undo", ("a",)), ("finally", ("b", "a.undo"), [("finally.bye", ())]),
    ]  # fmt: skip


def test_each_step_that_closes_a_plan_is_one_node_with_its_own_status() -> None:
    """What an undo of several steps does is inside of it, and all steps of `finally` are in their group."""
    inner = [written("find"), written("save", ["find"])]
    undone = step("a.undo", closes="undo", status="running", steps=inner)
    steps = [step("a"), undone, step("a.undo.find", closes="undo", status="completed")]
    steps.append(step("finally.x", closes="finally", status="completed"))
    steps.append(step("finally.y", ["finally.x"], closes="finally", status="running"))
    _, undo, last = tree_of(view(steps, **{"finally": [written("x"), written("y", ["x"]), written("z")]}))
    assert shape([undo, last]) == [
        ("a.undo", ("a",), [("a.undo.find", ()), ("a.undo.save", ("a.undo.find",))]),
        ("finally", ("a.undo",), [("finally.x", ()), ("finally.y", ("finally.x",)), ("finally.z", ())]),
    ]  # fmt: skip
    assert [each.status for each in (*undo.inside, *last.inside)] == ["completed", "", "completed", "running", ""]


def test_texts_of_plans_are_made_safe_and_are_bounded() -> None:
    (node,) = tree_of(view([step("a", description="x\u202e\x1b[2J" + "y" * 9_000)]))
    assert node.label.startswith("x\\u202e\\u001b[2J")
    assert len(node.label) == 120


def test_a_denied_step_is_not_just_skipped() -> None:
    denied = {"ok": False, "code": "DENIED", "error": "User denied approval"}
    (node,) = tree_of(view([step("a", status="skipped", result=denied)]))
    assert node.status == "denied"


def test_items_in_trouble_come_first_and_their_steps_are_named_by_what_they_do() -> None:
    items = [
        {"id": f"each[{name}]", "tool": "", "kind": "block", "status": status, "item": f"{name}, item {at} of 3"}
        | {"inside": {"kind": "block", "began": 1, "counts": counts}}
        for at, (name, status, counts) in enumerate(
            [("a", "completed", {"completed": 1}), ("b", "running", {"awaiting approval": 1}), ("c", "failed", {})], 1
        )
    ]
    inner = {"id": "each[b].remove", "tool": "delete_file", "status": "ready", "awaiting": "approval"}
    told = inner | {"item": "b, item 2 of 3", "description": "Delete it"}
    (loop,) = tree_of(
        view([step("each", status="running", forEach="x", steps=[written("remove")], instances=[*items, told])])
    )
    assert [node.label for node in loop.inside] == ["b", "c", "a"]
    assert [node.label for node in loop.inside[0].inside] == ["Delete it"]


def test_steps_of_a_loop_that_are_not_listed_are_counted_by_a_node_of_their_own() -> None:
    (loop,) = tree_of(view([MAPPED[1] | {"needs": [], "dependsOn": [], "moreInstances": 1_950}]))
    assert [(node.label, node.kind) for node in loop.inside][1:] == [
        ("resize[c.png]", "call"), ("a.png", "call"), ("1,950 more steps", "more"),
    ]  # fmt: skip
