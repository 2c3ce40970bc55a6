"""Plans and messages that try to wedge a run: each ends, or harms one step only."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from tests.kit.driving import Plans, statuses, step, work


def raw(data: bytes, encoding: bytes = b"json/plain") -> RawValue:
    """A raw payload."""
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


UNREADABLE = [
    raw(b'{"stepId":'),
    raw(b'{"stepId":"gate","comment":"\\ud800"}'),
    raw(b"[" * 5_000),
    raw(b"\xff\xfe", b"binary/plain"),
    raw(b"secret", b"binary/encrypted"),
    raw(b"", b"json/protobuf"),
    raw(b""),
]


@pytest.mark.parametrize("name", ["approve", "deny", "pause", "nonsense"])
@pytest.mark.modes("plain")
async def test_messages_that_are_no_json_harm_nothing(plans: Plans, name: str) -> None:
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    for payload in UNREADABLE:
        await plan.signal(name, payload)
    await plan.approve("gate", by="ann")
    view = await plan.ended()
    assert statuses(view) == {"gate": "completed"}
    assert [entry["text"] for entry in view["log"] if entry["kind"] == "approved"] == ["step 'gate' approved by ann"]


@pytest.mark.parametrize(
    "seconds", ["$source.text", "$source.negative", "$source.huge", "$source.list", "$source.none", "$big"]
)
@pytest.mark.modes("plain")
async def test_a_sleep_of_no_possible_length_fails_alone(plans: Plans, seconds: str) -> None:
    (plans.workspace / "big.json").write_text(f'"{"5" * 20_000}"')
    value = {"text": "abc", "negative": -1, "huge": 1e300, "list": [1], "none": None}
    steps: list[dict[str, Any]] = [
        work("source", args={"value": value}),
        {"id": "big", "tool": "read_json", "args": {"path": "big.json"}},
        {"id": "nap", "tool": "sleep", "args": {"seconds": seconds}},
    ]
    view = await plans.run(steps)
    assert statuses(view) == {"source": "completed", "big": "completed", "nap": "failed"}
    assert step(view, "nap")["result"]["code"] in ("INVALID_ARGS", "BAD_REFERENCE")


@pytest.mark.parametrize(
    "expression",
    ["ceil(to_number('nan'))", "ceil(to_number('inf'))", "sum(a)", "sort(a.list)", "max_by(a.list, &b)", "join(a, a)"],
)
@pytest.mark.modes("plain")
async def test_an_expression_that_cannot_be_computed_fails_alone(plans: Plans, expression: str) -> None:
    steps = [work("a", args={"value": {"list": [1, "x", {"b": 1}]}}), work("b", "a", when=expression), work("c", "a")]
    steps.append(work("path", args={"value": f"{{{{a | {expression.replace('a.list', 'list')}}}}}"}))
    view = await plans.run(steps)
    assert statuses(view)["a"] == statuses(view)["c"] == "completed"
    assert statuses(view)["b"] in ("failed", "skipped")
    assert statuses(view)["path"] == "failed"


@pytest.mark.modes("plain")
async def test_a_title_and_descriptions_as_long_as_allowed_do_no_harm(plans: Plans) -> None:
    steps = [work(f"s{number}", description="漢*" * 5_000) for number in range(40)]
    view = await plans.run(steps, title="漢" * 1_000)
    assert view["status"] == "completed"


@pytest.mark.modes("plain")
async def test_as_many_waiting_steps_with_ids_as_long_as_allowed_do_no_harm(plans: Plans) -> None:
    names = [f"{number:03}" + "x" * 125 for number in range(100)]
    plan = await plans.start([work(name, requiresApproval=True) for name in names])
    await plan.until_asked(names[-1])
    await plan.handle.cancel()
    assert (await plan.ended())["status"] == "cancelled"


@pytest.mark.modes("plain")
async def test_arguments_that_grow_beyond_all_bounds_fail_their_step(plans: Plans) -> None:
    steps = [work("a", args={"value": "x" * 8_000}), work("b", args={"value": "{{a}}" * 10_000})]
    view = await plans.run(steps)
    assert statuses(view) == {"a": "completed", "b": "failed"}
    assert step(view, "b")["result"]["code"] == "ARGS_TOO_LARGE"


@pytest.mark.modes("plain")
async def test_many_values_are_collected_in_one_step(plans: Plans) -> None:
    names = [f"s{number}" for number in range(100)]
    steps = [work(name, args={"value": "y" * 7_000}) for name in names]
    collect = {
        "id": "all",
        "tool": "write_file",
        "args": {"path": "all.txt", "content": "".join(f"{{{{{n}}}}}" for n in names)},
    }
    view = await plans.run([*steps, collect])
    assert view["status"] == "completed"
    assert (plans.workspace / "all.txt").stat().st_size == 700_000
