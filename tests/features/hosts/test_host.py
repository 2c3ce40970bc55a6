"""Which checkpoint counts, and what a run knows of its files after a move."""

from __future__ import annotations

from typing import Any

from plansurvive.features.hosts.model import left_behind, newest
from plansurvive.plans.hosts.host import Checkpoint, Host

HOST = Host(name="a", queue="plans@a", workspace="/w/plan-x~1", token="1")


def checkpoint(number: int, token: str = "1") -> Checkpoint:
    return Checkpoint(claim={"sha256": str(number)}, number=number, token=token)


def test_a_later_checkpoint_replaces_an_earlier_one_in_whatever_order_they_arrive() -> None:
    for order in ([1, 2, 3], [3, 1, 2], [2, 3, 1]):
        host = HOST
        for number in order:
            host = host.after(checkpoint(number))
        assert host.checkpoint == checkpoint(3)


def test_a_checkpoint_of_a_directory_that_the_plan_has_left_counts_for_nothing() -> None:
    moved = HOST.after(checkpoint(7)).model_copy(update={"token": "2"})
    assert moved.after(checkpoint(8)).checkpoint == checkpoint(7)
    assert moved.after(checkpoint(1, token="2")).checkpoint == checkpoint(1, token="2")
    assert moved.after(None) == moved


def test_the_newest_checkpoint_may_be_that_of_a_child_of_a_child() -> None:
    def run(number: int, token: str = "1", **below: Any) -> dict[str, Any]:
        checkpoint = {"claim": {}, "number": number, "token": token}
        host = HOST.model_dump(mode="json") | {"guest": True, "checkpoint": checkpoint}
        return {"parts": {"hosts": {"host": host}, "children": {"agents": below}}}

    children = {
        "plan": run(3, agent={"run": run(5)}),
        "elsewhere": run(9, token="2"),
        "bound": {"run": {}},
        "unreadable": {"parts": {"hosts": {"host": {"name": 1}}, "children": {"agents": {"x": run(4)}}}},
    }
    found = newest(HOST, children).checkpoint
    assert found is not None
    assert found.number == 5
    assert newest(HOST, {}) == HOST
    assert left_behind(HOST) == left_behind(None) == {}
