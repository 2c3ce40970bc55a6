"""Decides what follows in a container: which items and rounds begin, what `catch` and `finally` do, how it ends.

Rules (DESIGN 2.8)
- A block ends when its steps have ended or can never start: failed if one failed, denied if one was denied.
- `forEach`: more failures than `tolerate` fail the step once the items in progress have ended; none is begun after
  that. Denials count as well, but only when all items have ended: each of them begins, and people decide about each.
  An item that was skipped, or failed or was denied within `tolerate`, has the value null.
- `repeat`: rounds follow each other until `until` holds; a failed round fails the step; REPEAT_LIMIT after the last.
- `catch`: the first handler that names the code, or none, runs; then the step counts as completed with its value.
- `finally`: runs last, whatever happened; its own failure fails the block. When the plan is interrupted it does not:
  the block has not ended, and the run that resumes it continues it.

Nothing here changes the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from plansurvive.plans.definition.scopes import CATCH, FINALLY
from plansurvive.plans.errors import BadExpression, BadReference
from plansurvive.plans.expressions.conditions import holds, is_true, search
from plansurvive.plans.expressions.evaluation import Budget
from plansurvive.plans.expressions.items import list_expression
from plansurvive.plans.expressions.references import describe, fill_text
from plansurvive.plans.flow.batches.outcome import Failures, failures_of
from plansurvive.plans.flow.batches.split import MAX_BATCHED, begun_items, is_split, units_of
from plansurvive.plans.flow.ids import inner_id, item_key
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.flow.outline import Node, Outline
from plansurvive.plans.flow.values import Composer, output_of
from plansurvive.plans.model import MAX_STEPS, Case, ForEach, Step
from plansurvive.plans.step_state import (
    DENIALS,
    DENIED,
    ITEMS_DENIED,
    NOBODY_ANSWERED,
    Outcome,
    Result,
    Status,
    StepState,
)

MAX_ITEMS = MAX_STEPS
"""Maximum number of items of one `forEach` in one plan; more run as child plans (`mode: plans`)."""
ITEMS_FAILED, REPEAT_LIMIT, NOT_FINISHED, NO_LIST, BAD_KEY, TOO_MANY = (
    "ITEMS_FAILED", "REPEAT_LIMIT", "NOT_FINISHED", "NOT_A_LIST", "BAD_KEY", "TOO_MANY_ITEMS"
)  # fmt: skip
CANCELLED = "CANCELLED"
"""Code of a step that was running when the plan was cancelled."""
WAS_CANCELLED = "the plan was cancelled"
"""Why such a plan starts nothing more."""
_NEVER_CAUGHT = frozenset((CANCELLED, ITEMS_DENIED))
"""A `catch` is for errors: what a person refuses, like a single denied step, is none."""


class Further(NamedTuple):
    """The container goes on: with this progress, after so many seconds."""

    opened: Opened
    delay: float = 0.0


class Settle(NamedTuple):
    """The container has ended."""

    outcome: Outcome


def items_of(rule: ForEach, values: Mapping[str, Any], budget: Budget | None = None) -> Opened:
    """The items of a loop and their keys. Raises BadReference or BadExpression."""
    found = rule.items
    if isinstance(found, str):
        found = search(list_expression(found), dict(values), budget)
    elif found:
        found = [fill_text(each, values, None, budget) if isinstance(each, str) else each for each in found]
    if not isinstance(found, list):
        raise BadReference(f"forEach: a list is needed; '{rule.items}' is {describe(found)}", NO_LIST)
    if len(found) > (MAX_BATCHED if is_split(rule) else MAX_ITEMS):
        text = f"forEach: {len(found)} items; {MAX_ITEMS} can run in one plan, {MAX_BATCHED} with `mode: plans`"
        raise BadReference(text, TOO_MANY)
    keys = None if rule.key is None else [_key(rule.key, item, budget) for item in found]
    if keys is not None and len(set(keys)) < len(keys):
        twice = Counter(keys).most_common(1)[0][0]
        raise BadReference(f"forEach: two items have the key '{twice}'; keys must be unique", BAD_KEY)
    return Opened(items=found, keys=keys)


def case_of(cases: list[Case], loaded: Callable[[str], Mapping[str, Any]], budget: Budget | None = None) -> int | None:
    """The first alternative that holds; None if none does. `loaded`: the values for a condition.

    Raises BadExpression.
    """
    for index, case in enumerate(cases):
        if case.when is None or holds(case.when, loaded(case.when), budget):
            return index
    return None


def tolerated(rule: ForEach, items: int) -> int:
    """How many items may fail or be denied."""
    if isinstance(rule.tolerate, str):
        return items * int(rule.tolerate[:-1]) // 100
    return rule.tolerate


def may_begin_more(step: Step, opened: Opened) -> bool:
    """Whether further items of a loop are begun."""
    if step.for_each is None or opened.items is None:
        return False
    if opened.began >= units_of(step.for_each, len(opened.items)):
        return False
    return opened.failed <= tolerated(step.for_each, len(opened.items))


def handler_for(step: Step, result: Result) -> int | None:
    """The `catch` that takes this failure."""
    if result.ok or result.code in _NEVER_CAUGHT:
        return None
    for index, handler in enumerate(step.catch or []):
        if not handler.codes or result.code in handler.codes:
            return index
    return None


class Progress:
    """The containers of one run, as they stand."""

    def __init__(
        self, outline: Outline, opened: Mapping[str, Opened], steps: Mapping[str, StepState], stopped: str, *,
        closes: bool = True,
    ) -> None:  # fmt: skip
        self._outline, self._opened, self._steps, self._stopped = outline, opened, steps, stopped
        self._closes = closes
        """Whether a `finally` may begin; in an interrupted plan it may not: the run that resumes it has it."""

    def next_move(self, step_id: str, now: datetime) -> Further | Settle:
        """What follows when everything that has begun inside a container has ended."""
        node, opened = self._outline.nodes[step_id], self._opened[step_id]
        if opened.closing:
            return Settle(self._after_finally(node, opened, now))
        if opened.handler is not None:
            ended = self._after_catch(node, opened, now)
        elif opened.body is not None:
            ended = Outcome(Status.FAILED, opened.body)
        else:
            try:
                found = self._body(node, opened, now)
            except BadExpression as error:
                found = _failed(error.code, error.message, now)
            if isinstance(found, Further):
                return found
            ended = found
            handler = handler_for(node.step, ended.result) if ended.status is Status.FAILED else None
            if handler is not None and node.kind != "each" and not self._stopped:
                return Further(opened.model_copy(update={"body": ended.result, "handler": handler}))
        if node.step.finally_ is not None and node.kind in ("block", "switch", "repeat") and self._closes:
            cut = not ended.result.ok and (self._stopped == WAS_CANCELLED or ended.result.code == CANCELLED)
            return Further(opened.model_copy(update={"body": ended.result, "closing": True, "cancelled": cut}))
        return Settle(ended)

    def _body(self, node: Node, opened: Opened, now: datetime) -> Outcome | Further:
        if node.kind == "each":
            return self._items(node, opened, now)
        if node.kind == "repeat":
            return self._rounds(node, opened, now)
        return self._block(node, now)

    def _items(self, node: Node, opened: Opened, now: datetime) -> Outcome:
        rule, total = node.step.for_each or ForEach(items=[]), len(opened.items or [])
        failed, denied, first_lost, lost = self._failures(node, rule)
        begun, allowed = begun_items(rule, opened.began, total), 0 if opened.part else tolerated(rule, total)
        if lost and self._stopped:
            return self._unfinished(now)
        if lost or failed + denied > allowed:
            first = self._steps[first_lost or ""].result
            why = f"'{first_lost}' {first.code}: {first.error}" if first is not None else f"'{first_lost}'"
            tolerates = f", as `tolerate` is {rule.tolerate}" if failed > tolerated(rule, total) else ""
            left = f"; {total - begun} did not start{tolerates}" if begun < total else ""
            if not lost and failed <= allowed:
                also = f", {failed} failed" if failed else ""
                text = (
                    f"{denied} of {total} items were denied{also}; `tolerate` allows {allowed}{left}; the first: {why}"
                )
                return _failed(ITEMS_DENIED, text[:2_000], now)
            also = f", {denied} were denied" if denied else ""
            return _failed(ITEMS_FAILED, f"{failed} of {total} items failed{also}{left}; the first: {why}"[:2_000], now)
        if begun < total or any(self._steps[child].status is Status.BLOCKED for child in node.children):
            return self._unfinished(now)
        return _completed(now)

    def _failures(self, node: Node, rule: ForEach) -> Failures:
        if is_split(rule):
            return failures_of(node.children, self._steps)
        denied = [child for child in node.children if self._steps[child].counts_as_denied]
        failed = [child for child in node.children if self._steps[child].status is Status.FAILED]
        failed = [child for child in failed if not self._steps[child].counts_as_denied]
        return Failures(len(failed), len(denied), next(iter([*failed, *denied]), None), lost=False)

    def _rounds(self, node: Node, opened: Opened, now: datetime) -> Outcome | Further:
        rule, last = node.step.repeat, node.children[-1]
        if rule is None or self._steps[last].status is not Status.COMPLETED:
            return self._worst([last], now) or self._unfinished(now)
        if is_true(search(rule.until, self._composer().value(last))):
            return _completed(now)
        if opened.began >= rule.limit:
            text = f"`until` did not hold after {opened.began} rounds: {rule.until}"
            return _failed(REPEAT_LIMIT, text, now)
        if self._stopped:
            return self._unfinished(now)
        return Further(opened.model_copy(update={"began": opened.began + 1}), rule.delay)

    def _block(self, node: Node, now: datetime) -> Outcome:
        worst = self._worst(node.children, now)
        if worst is not None:
            return worst
        if node.step.output is None:
            return _completed(now)
        composer = self._composer()
        value = output_of(composer.inside(node.id), node.step.output)
        return Outcome(Status.COMPLETED, Result(ok=True, value=value, timestamp=now))

    def _worst(self, children: list[str], now: datetime) -> Outcome | None:
        """How a block ends that has not completed; None if it has."""
        states = [(child, self._steps[child]) for child in children]
        for child, state in sorted(states, key=lambda pair: pair[1].counts_as_denied):  # an error counts for more
            if state.status is Status.FAILED and state.result is not None:
                text = f"step '{child}' failed: {state.result.error}"
                return _failed(state.result.code or "STEP_FAILED", text[:2_000], now)
        for child, state in sorted(states, key=lambda pair: pair[1].is_unanswered):  # a person's denial counts for more
            if state.is_denied:
                text = f"step '{child}' was {'not answered in time' if state.is_unanswered else 'denied'}"
                code = NOBODY_ANSWERED if state.is_unanswered else DENIED
                return Outcome(Status.SKIPPED, Result(ok=False, error=text, code=code, timestamp=now), opens=False)
        if any(state.status is Status.BLOCKED for _, state in states):
            blocked = next(child for child, state in states if state.status is Status.BLOCKED)
            why = self._steps[blocked].reason or self._stopped
            return _failed(NOT_FINISHED, f"step '{blocked}' was not run: {why}"[:2_000], now)
        return None

    def _after_catch(self, node: Node, opened: Opened, now: datetime) -> Outcome:
        state = self._steps[inner_id(node.id, CATCH)]
        if state.status is Status.COMPLETED:
            return _completed(now)
        body, result = opened.body, state.result
        what = f"; its catch failed: {result.error}" if result is not None else "; its catch was not finished"
        return _failed(
            (body.code if body else None) or "STEP_FAILED", f"{body.error if body else ''}{what}"[:2_000], now
        )

    def _after_finally(self, node: Node, opened: Opened, now: datetime) -> Outcome:
        state, body = self._steps[inner_id(node.id, FINALLY)], opened.body
        if body is None or (body.ok and state.status is not Status.COMPLETED):
            text = state.result.error if state.result is not None and state.result.error else state.reason
            return _failed((state.result.code if state.result else None) or NOT_FINISHED, f"finally: {text}", now)
        if body.ok:
            return Outcome(Status.COMPLETED, body.model_copy(update={"timestamp": now}))
        if body.code in DENIALS:
            return Outcome(Status.SKIPPED, body, opens=False)
        return Outcome(Status.FAILED, body.model_copy(update={"timestamp": now}))

    def _unfinished(self, now: datetime) -> Outcome:
        return _failed(NOT_FINISHED, f"not finished: {self._stopped or 'its steps could not all run'}", now)

    def _composer(self) -> Composer:
        return Composer(self._outline, self._opened, self._steps)


def _key(expression: str, item: Any, budget: Budget | None) -> str:
    found = search(expression, item, budget)
    if isinstance(found, bool) or not isinstance(found, (str, int, float)) or found == "":
        text = f"forEach: key '{expression}' gives {describe(found)} for an item; a text or a number is needed"
        raise BadReference(text, BAD_KEY)
    return item_key(str(found))


def _completed(now: datetime) -> Outcome:
    return Outcome(Status.COMPLETED, Result(ok=True, composed=True, timestamp=now))


def _failed(code: str, text: str, now: datetime) -> Outcome:
    return Outcome(Status.FAILED, Result(ok=False, error=text, code=code, timestamp=now))
