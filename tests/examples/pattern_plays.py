"""What happens around the plan of each control-flow pattern: events, decisions, edits; and how it should end.

A play is a function of the started plan. It does what people and other systems would do, checks what only shows while
the plan runs, and returns the ending to compare.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.examples.pattern_play import Ending, Play, never_together

Acts = Callable[[Play], Awaitable[Ending]]
PLAYS: dict[str, Acts] = {}


def play(name: str) -> Callable[[Acts], Acts]:
    """Register the play of a plan."""

    def registered(function: Acts) -> Acts:
        PLAYS[name] = function
        return function

    return registered


def plain(name: str, *files: str, **more: Any) -> None:
    """Register a plan that needs nothing from outside."""
    PLAYS[name] = lambda each: each.ends(*files, **more)


plain("01-sequence", "draft.txt", "door.txt", values={"proofread": "The lift is out of order."})
plain("04-exclusive-choice", "parcel.txt")
plain("05-simple-merge", "card.txt", "receipt.txt")
plain("06-multi-choice", "wrap.txt", "rush.txt", not_completed={"insure": "skipped"})
plain("07-structured-synchronizing-merge", "skin.txt", "diagnosis.txt", not_completed={"lungs": "skipped"})
plain("11-implicit-termination", "hall.txt", "wet.txt", "lamps.txt")
plain(
    "13-instances-known-in-the-plan",
    *(f"signatures/{name}.txt" for name in ("president", "secretary", "treasurer")),
    values={"file": ["signatures/president.txt", "signatures/secretary.txt", "signatures/treasurer.txt"]},
)
plain(
    "14-instances-known-when-they-start",
    "guests.json", "invitations/ann.txt", "invitations/bob.txt",
    values={"post": ["invitations/ann.txt", "invitations/bob.txt"]},
)  # fmt: skip
plain("18-milestone", "order.txt", "closed.txt", values={"ship": "one lamp"})
plain("22-recursion", "opened/large.txt", "opened/medium.txt", "opened/small.txt")
plain(
    "37-local-synchronizing-merge",
    "food.txt", "bag.txt", "basket.txt", "left.txt",
    not_completed={"tent": "skipped"},
)  # fmt: skip
plain(
    "38-general-synchronizing-merge",
    "doses/1.txt", "doses/2.txt", "doses/3.txt",
    values={"dismiss": ["doses/1.txt", "doses/2.txt", "doses/3.txt"]},
    not_completed={"advise": "skipped"},
)  # fmt: skip
plain(
    "41-thread-merge",
    "chapters/one.txt", "chapters/two.txt", "chapters/three.txt",
    values={"bind": ["chapters/one.txt", "chapters/three.txt", "chapters/two.txt"]},
)  # fmt: skip
plain(
    "42-thread-split",
    "mould.txt",
    *(f"{side}/{name}.txt" for side in ("left", "right") for name in ("leather", "shoe")),
)
plain("43-explicit-termination", "found/key.txt", "door.txt")


@play("02-parallel-split")
async def both_branches_begin_before_either_ends(play: Play) -> Ending:
    ending = await play.ends("order.txt", "parcel.txt", "bill.txt")
    order = await play.order()
    assert order[:2] == ["+order", "-order"]
    assert sorted(order[2:4]) == ["+bill", "+pack"]
    return ending


@play("03-synchronization")
async def the_join_begins_after_both_branches(play: Play) -> Ending:
    ending = await play.ends("bill.txt", "shipped.txt")
    assert (await play.order())[-2:] == ["+ship", "-ship"]
    return ending


@play("08-multi-merge")
async def what_follows_the_merge_runs_once_per_branch(play: Play) -> Ending:
    ending = await play.ends("frame.txt", "engine.txt", "inspected-frame.txt", "inspected-engine.txt")
    inspections = [each for each in await play.order() if each.endswith(".inspect")]
    assert len(inspections) == 4
    return ending


@play("09-structured-discriminator")
async def the_first_answer_is_enough_and_the_others_come_later(play: Play) -> Ending:
    await play.until("reply", "completed")
    assert play.files("answers/*") == ["answers/one.txt"]
    await play.event("archives.open")
    ending = await play.ends("answers/one.txt", "answers/two.txt", "answers/three.txt", values={"reply": "found"})
    assert (await play.order()).count("+reply") == 1
    return ending


@play("12-instances-without-synchronization")
async def the_case_is_archived_while_the_drivers_have_not_paid(play: Play) -> Ending:
    view = await play.until("archive", "completed")
    assert play.left_over(view) == {"remind": "running"}
    for name in ("ann", "bob", "cid"):
        await play.event(f"fine.paid.{name}", by=name)
    return await play.ends("archive.txt")


@play("15-instances-added-while-they-run")
async def two_witnesses_come_while_the_plan_runs(play: Play) -> Ending:
    await play.until_waiting("closed")
    for number in (2, 3):
        args = {"path": f"statements/{number}.txt", "content": "So did I."}
        added = {"id": f"witness_{number}", "tool": "write_file", "args": args}
        depends = ["closed", *(f"witness_{earlier}" for earlier in range(1, number + 1))]
        await play.edit(
            {"op": "add", "step": added, "before": "closed"},
            {"op": "set", "stepId": "report", "path": "dependsOn", "value": depends},
        )
    await play.event("witnesses.closed")
    files = [f"statements/{number}.txt" for number in (1, 2, 3)]
    return await play.ends(*files, values={"report": files})


@play("16-deferred-choice")
async def the_customer_complains_first(play: Play) -> Ending:
    await play.until_waiting("reply")
    await play.event("reply", kind="complaint")
    await play.event("reply", kind="order")
    return await play.ends("apology.txt")


@play("17-interleaved-parallel-routing")
async def no_two_steps_run_at_once_and_the_fixed_order_is_kept(play: Play) -> Ending:
    ending = await play.ends("unpacked.txt", "connected.txt", "labelled.txt", "page.txt")
    order = await play.order()
    assert never_together(order)
    assert order.index("-unpack") < order.index("+connect") < order.index("+print")
    assert order.index("-label") < order.index("+print")
    return ending


@play("19-cancel-activity")
async def the_step_that_waits_is_skipped(play: Play) -> Ending:
    await play.until_waiting("inspect")
    await play.edit({"op": "skip", "stepId": "inspect", "reason": "nobody lives there"})
    return await play.ends("keys.txt", not_completed={"inspect": "skipped"})


@play("20-cancel-case")
async def the_plan_is_cancelled_while_it_waits(play: Play) -> Ending:
    await play.until_waiting("decision")
    await play.started.handle.cancel()
    ending = await play.ends("application.txt", "filed.txt", status="cancelled")
    assert play.text("filed.txt") == "cancelled"
    left_over = play.left_over(ending.view)
    assert set(left_over) == {"decision", "move"}
    return Ending(ending.view, ending.files, not_completed=left_over, status="cancelled")


@play("21-structured-loop")
async def glasses_are_filled_until_there_are_three(play: Play) -> Ending:
    ending = await play.ends("glasses/1.txt", "glasses/2.txt", "glasses/3.txt", "served.txt")
    assert play.text("served.txt") == "3 glasses"
    return ending


@play("24-persistent-trigger")
async def the_payment_comes_before_anybody_waits_for_it(play: Play) -> Ending:
    await play.event("payment", by="card")
    await play.until_waiting("ready")
    await play.event("goods.arrived")
    ending = await play.ends("handed-out.txt", values={"paid": {"by": "card"}})
    assert play.text("handed-out.txt") == "paid by card"
    return ending


@play("25-cancel-region")
async def the_trip_is_cancelled_and_the_neighbour_is_not(play: Play) -> Ending:
    await play.cancel_child("trip")
    await play.until("trip", "completed")
    await play.event("neighbour.asked")
    return await play.ends("home.txt")


@play("26-cancel-instances")
async def the_survey_is_cancelled(play: Play) -> Ending:
    await play.cancel_child("survey")
    return await play.ends("guess.txt", "decision.txt")


@play("27-complete-instances")
async def one_reviewer_agrees_and_the_others_are_not_waited_for(play: Play) -> Ending:
    await play.until_waiting("review")
    await play.started.approve("review[ann]")
    await play.until_file("reviews/ann.txt")
    for name in ("bob", "cid"):
        await play.started.deny(f"review[{name}]")
    return await play.ends("reviews/ann.txt", values={"count": ["reviews/ann.txt"]}, status="partial")


@play("30-structured-partial-join")
async def two_of_three_members_vote(play: Play) -> Ending:
    for name in ("ann", "bob", "cid"):
        await play.event("vote", by=name)
    ending = await play.ends("votes/ann.txt", "votes/bob.txt", "accepted.txt")
    assert play.text("accepted.txt") == "after 2 votes"
    return ending


@play("33-generalized-and-join")
async def each_bicycle_is_put_together_from_its_own_parts(play: Play) -> Ending:
    colours = ("red", "blue", "green")
    ending = await play.ends(*(f"{colour}/{name}.txt" for colour in colours for name in ("frame", "bicycle")))
    order = await play.order()
    assert all(order.count(f"+bicycle[{colour}].assemble") == 1 for colour in colours)
    return ending


@play("34-static-partial-join-for-instances")
async def two_results_are_enough_and_the_third_comes_later(play: Play) -> Ending:
    await play.until("release", "completed")
    assert play.files("results/*") == ["results/a.txt", "results/b.txt"]
    await play.event("laboratory.called")
    return await play.ends("results/a.txt", "results/b.txt", "results/c.txt", "released.txt")


@play("36-dynamic-partial-join-for-instances")
async def two_offers_are_enough_once_that_from_the_north_is_there(play: Play) -> Ending:
    await play.event("offer.south", price=3)
    await play.until_file("offers/south.txt")
    await play.event("offer.north", price=2)
    await play.until("choose", "completed")
    assert play.files("offers/*") == ["offers/north.txt", "offers/south.txt"]
    await play.event("offer.west", price=1)
    return await play.ends("offers/north.txt", "offers/south.txt", "offers/west.txt", "chosen.txt")


@play("39-critical-section")
async def each_leaves_the_dock_before_another_enters(play: Play) -> Ending:
    names = ("north", "south", "west")
    ending = await play.ends(*(f"dock/{name}-{way}.txt" for name in names for way in ("in", "out")))
    order = await play.order()
    assert never_together(order)
    used = [each.split("[")[1].split("]")[0] for each in order]
    assert [used[start : start + 4] for start in (0, 4, 8)] == [[name] * 4 for name in used[::4]]
    return ending


@play("40-interleaved-routing")
async def every_step_runs_once_and_alone(play: Play) -> Ending:
    ending = await play.ends("blood.txt", "sight.txt", "weight.txt")
    order = await play.order()
    assert len(order) == 6
    assert never_together(order)
    return ending
