"""One decision about all steps that fit a pattern, as in `resize[*]`, and await approval now (DESIGN 2.8).

Each of them is decided about for itself, as `approvals.decide` does it, with its own digest. A decision may name the
digests of the calls that a person has read: then it is about those alone. What begins to await approval after the calls
were shown is not meant, as nobody read it. Rejected: one update per item; a run takes 2,000.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.flow.ids import covers, is_pattern, matches, pattern_of
from plansurvive.plans.log import LogKind
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import NO_RULES, RuleSet
from plansurvive.plans.run.people import who_of
from plansurvive.plans.text.lists import some

NAMED = 20
"""Steps named in the log entry, and refusals in the answer."""
LISTED = 100
"""Steps in the answer."""


def check(run: Run, message: Decide, now: datetime, rules: RuleSet = NO_RULES) -> None:
    """Raise Refused if the decision cannot be accepted. `rules`: of the features that the run asks."""
    if is_pattern(message.step_id):
        _meant(run, message)
    elif message.digests is not None:
        raise Refused("`digests` are for a pattern, as in `resize[*]`; a single step has one `digest`", "BAD_MESSAGE")
    else:
        approvals.check(run, message, now, rules)


def decide(
    run: Run, message: Decide, now: datetime, source: Literal["signal", "update"], rules: RuleSet = NO_RULES
) -> dict[str, Any]:
    """Record a decision about a step, or about all that fit a pattern. Returns it as JSON.

    Of a pattern: `stepId`, `approved`, `count`, the first `stepIds`, and `refused` by step. Raises Refused.
    """
    check(run, message, now, rules)
    if not is_pattern(message.step_id):
        return approvals.decide(run, message, now, source, rules=rules).model_dump(mode="json")
    decided, refused = list[str](), dict[str, Refused]()
    for name in _meant(run, message):
        digest = run.steps[name].digest if message.digests is not None else None
        one = message.model_copy(update={"step_id": name, "digest": digest, "digests": None})
        try:
            approvals.decide(run, one, now, source, is_told=False, rules=rules)
        except Refused as refusal:
            refused[name] = refusal
        else:
            decided.append(name)
    if not decided:
        raise next(iter(refused.values()))
    _tell(run, message, decided, refused, now)
    return {
        "stepId": message.step_id, "approved": message.approved, "count": len(decided), "stepIds": decided[:LISTED],
        "refused": {name: refused[name].message for name in list(refused)[:NAMED]},
    }  # fmt: skip


def _meant(run: Run, message: Decide) -> list[str]:
    """The steps that the decision is about, in the order in which they asked. Raises Refused if there are none."""
    if message.args is not None:
        raise Refused("arguments can be changed for one step at a time, not for a pattern", "INVALID_ARGS")
    if message.override:
        raise Refused("an override is of one step, not of a pattern", "INVALID_ARGS")
    if message.digest is not None:
        raise Refused("a pattern covers several calls: send their `digests`", "BAD_MESSAGE")
    digests = None if message.digests is None else set(message.digests)
    states = [(name, state) for name, state in run.steps.items() if state.awaiting == "approval"]
    found = [
        (state.changes[-1].seq, name)
        for name, state in states
        if state.proposal is None and name not in run.decisions and matches(message.step_id, name)
    ]
    if not found:
        inside = dict.fromkeys(f"'{pattern_of(name)}'" for name, _ in states if covers(message.step_id, name))
        others = f"; inside: {', '.join(list(inside)[:NAMED])}" if inside else ""
        raise Refused(f"no step that fits '{message.step_id}' awaits approval now{others}", "NONE_AWAITS")
    named = [name for _, name in sorted(found) if digests is None or run.steps[name].digest in digests]
    if not named:
        text = f"the steps that fit '{message.step_id}' ask for other calls than the decision names"
        raise Refused(f"{text}; read them with `plan pending` and decide about those", "STALE_DIGEST")
    return named


def _tell(run: Run, message: Decide, decided: list[str], refused: dict[str, Refused], now: datetime) -> None:
    """One entry for all of them, and one for those that were refused: the log has room for 200."""
    verb = "approved" if message.approved else "denied"
    who = f" by {who_of(run, message)}" if message.by else ""
    why = f": {message.comment}" if message.comment else ""
    kind = LogKind.APPROVED if message.approved else LogKind.DENIED
    text = f"{len(decided)} steps '{message.step_id}' {verb}{who}{why} ({_named(decided)})"
    run.note(kind, text, now, subject=message.step_id)
    if refused:
        first = next(iter(refused.values()))
        text = f"REFUSED:{first.code} {len(refused)} steps '{message.step_id}' ({_named(list(refused))}): "
        run.note(LogKind.REFUSED, text + first.message, now, code=first.code, subject=message.step_id)


def _named(names: list[str]) -> str:
    return some(names, NAMED, lambda name: name[:40])
