"""Decides about all items of a loop that await approval now, each with the digest of the call that was shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from temporalio.client import Client

from plansurvive.client.children.naming import all_located
from plansurvive.client.decisions import Choice, decide
from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import ask_view
from plansurvive.client.updates import update
from plansurvive.plans.errors import Refused
from plansurvive.plans.flow.ids import covers, is_pattern, matches, pattern_of
from plansurvive.plans.text.safe_text import quoted
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.queries import BRIEF

AT_ONCE = 150
"""Decisions in one message, which has at most 16 KiB."""
ROUNDS = 100
"""Views that are read at most: each shows the calls of up to 200 items."""


async def decide_all(
    client: Client, plan: str, choice: Choice, *, approved: bool,
    show: Callable[[Sequence[Card]], None] = lambda _: None, digests: Sequence[str] | None = None,
) -> tuple[int, dict[str, str]]:  # fmt: skip
    """Decide about every step that fits the pattern `choice.step_id` and awaits approval now.

    Of steps of child plans and agents in a loop, any part of the path may be a pattern: `each[*].deploy/upload`.

    `digests`: of the calls that a person has read; then it is about those alone, and nothing is shown. Else `show` gets
    the calls before they are decided about; what begins to await meanwhile is left alone, unless it was shown. Returns
    the number of decisions, and why some were refused, by step. Raises Refused (NONE_AWAITS, STALE_DIGEST), NoWorker.
    """
    count, refused, refusals = 0, dict[str, str](), dict[str, Refused]()
    for path, (place, step) in (await all_located(client, plan, choice.step_id)).items():
        here = choice.model_copy(update={"step_id": step})
        try:
            number, why = await _decide_in(client, place, here, approved, show, digests)
        except Refused as refusal:
            refusals[path] = refusal
            continue
        prefix = path.removesuffix(step)
        count, refused = count + number, refused | {f"{prefix}{name}": each for name, each in why.items()}
    if refusals and not count and not refused:
        raise next(iter(refusals.values()))
    return count, refused | {path: each.message for path, each in refusals.items() if each.code != "NONE_AWAITS"}


async def _decide_in(
    client: Client, plan: str, choice: Choice, approved: bool,
    show: Callable[[Sequence[Card]], None], digests: Sequence[str] | None,
) -> tuple[int, dict[str, str]]:  # fmt: skip
    """Decide in one plan or agent, about all that fits a pattern or about one step."""
    if digests is not None and is_pattern(choice.step_id):
        return await _decide_these(client, plan, choice, digests, approved)
    count, refused, seen = 0, dict[str, str](), set[str]()
    for _ in range(ROUNDS):
        view = await ask_view(client, plan, BriefView, "plan", BRIEF)
        asked = (item for item in view.pending if item.kind == "approval" and matches(choice.step_id, item.step_id))
        items = [item for item in asked if item.digest not in seen and (digests is None or item.digest in digests)]
        if not items:
            break
        if digests is None:
            show(items)
        seen |= {item.digest for item in items}
        found = list(dict.fromkeys(item.digest for item in items))
        number, why = await _decide_these(client, plan, choice, found, approved)
        count, refused = count + number, refused | why
        if not view.more_pending:
            break
    if not count and not refused:
        names = (item.step_id for item in view.pending if covers(choice.step_id, item.step_id))
        inside = dict.fromkeys(map(pattern_of, names))
        others = f"; inside: {', '.join(map(quoted, inside))}" if inside else ""
        text = f"no step of plan '{plan_id(plan)}' that fits '{choice.step_id}' awaits approval now{others}"
        raise Refused(text, "NONE_AWAITS")
    return count, refused


async def _decide_these(
    client: Client, plan: str, choice: Choice, digests: Sequence[str], approved: bool
) -> tuple[int, dict[str, str]]:
    """Decide about the calls with these digests."""
    if not is_pattern(choice.step_id):
        one = choice.model_copy(update={"digest": digests[0]})
        await decide(client, plan, one, approved=approved)
        return 1, {}
    count, refused = 0, dict[str, str]()
    for start in range(0, len(digests), AT_ONCE):
        number, why = await _decide(client, plan, choice, digests[start : start + AT_ONCE], approved)
        count, refused = count + number, refused | why
    return count, refused


async def _decide(
    client: Client, plan: str, choice: Choice, digests: Sequence[str], approved: bool
) -> tuple[int, dict[str, str]]:
    answer = await update(client, plan, "decide", choice.message() | {"approved": approved, "digests": digests})
    refused = answer.get("refused") or {}
    return int(answer.get("count", 0)), {str(name): str(why) for name, why in refused.items()}
