"""What a forecast says, in words: the same in the terminal and on the web page."""

from __future__ import annotations

from collections import Counter

from plansurvive.features.forecast.model import Forecast, ForeseenStep
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.lists import number_of

MARKS = {"run": "▸", "cached": "=", "skip": "–", "fail": "✗", "blocked": "✗", "depends": "?"}
"""By outlook."""
_WORDS = {
    "run": "runs", "cached": "from an earlier run", "skip": "is skipped", "fail": "fails", "blocked": "cannot start",
    "depends": "depends",
}  # fmt: skip
_ONE = {
    "run": "step runs", "cached": "is taken from an earlier run", "skip": "is skipped", "fail": "fails",
    "blocked": "cannot start", "depends": "depends on what others find",
}  # fmt: skip
_MANY = {
    "run": "steps run", "cached": "are taken from earlier runs", "skip": "are skipped", "fail": "fail",
    "blocked": "cannot start", "depends": "depend on what others find",
}  # fmt: skip
NAMED = 5
"""Steps that are named of those that one depends on."""


def kind_of(step: ForeseenStep) -> str:
    """Its tool, or how large it is; empty: a block."""
    if step.tool:
        return step.tool
    if step.rounds:
        return f"at most {step.rounds} rounds"
    return "" if step.items is None else f"{step.items} items"


def outlook_of(step: ForeseenStep) -> str:
    """What becomes of a step, and why, if that is known."""
    if step.taken_from:
        return f"{_WORDS[step.outlook]}: {step.taken_from}"
    on = f" on {', '.join(step.depends_on[:NAMED])}" if step.depends_on else ""
    on += " ..." if len(step.depends_on) > NAMED else ""
    return f"{_WORDS[step.outlook]}{on}" + (f": {step.why}" if step.why else "")


def counted(found: Forecast) -> str:
    """How many steps run, are taken from earlier runs, ...: calls, and what is not known of a block or loop."""
    counts = Counter(step.outlook for step in found.steps if step.tool or step.outlook != "run")
    told = ", ".join(f"{number} {(_ONE if number == 1 else _MANY)[name]}" for name, number in counts.items())
    each = " (each item of a loop counts)" if any(step.items is not None for step in found.steps) else ""
    return f"{told}{each}" if told else "No step would run."


def asking(found: Forecast) -> str:
    """How many steps would wait for a person, by the same count; empty: none."""
    number = sum(bool(step.asks and step.tool) for step in found.steps)
    loops = [step.step_id for step in found.steps if step.asks and not step.tool]
    named = ", ".join(loops[:NAMED]) + (" ..." if len(loops) > NAMED else "")
    if not number:
        return f"each item of {named} would wait for a person" if loops else ""
    return f"{number} would wait for a person" + (f"; so would each item of {named}" if loops else "")


def undoing(found: Forecast) -> str:
    """When the undos would run; empty: there are none."""
    if not found.undos:
        return ""
    return "If a step fails, these undo what completed:" if found.rollback else "`plan undo` would undo what completed:"


def needed(found: Forecast) -> str:
    """How long it takes and at what cost, by earlier runs."""
    if not found.earlier:
        return "No earlier run is known: no times, no tokens."
    rests = f"by {number_of(found.earlier, 'earlier run')}"
    without = f", without {number_of(found.untimed, 'step')} whose time is not known" if found.untimed else ""
    time = f"It takes about {seconds(found.seconds)} {rests}{without}" if found.seconds is not None else ""
    tokens = f"about {found.tokens:,} tokens of the LLM {rests}" if found.tokens else ""
    cost = f", {found.cost:.4f} by PLANS_LLM_PRICES" if found.cost is not None and tokens else ""
    return "; ".join(filter(None, (time, f"{tokens}{cost}"))) or "No step's time is known."
