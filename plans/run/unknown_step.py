"""What is said of a step that a run does not have: which one may be meant, which are inside loops and blocks, and which
have not been started by what they are inside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.errors import Refused
from plansurvive.plans.expressions.json_path import first_name
from plansurvive.plans.flow.ids import is_pattern, lineage, pattern_of, template_of
from plansurvive.plans.model import Step
from plansurvive.plans.model.step_fields import On, aliases
from plansurvive.plans.run import DONE, Run
from plansurvive.plans.text.lists import some

MAX_LISTED = 3
"""Steps that are named."""
MAX_CHOICES = 8
"""Steps that are named where any of them may be meant."""


def unknown_step(name: str, run: Run, of_all: Callable[[str], str] | None = None) -> Refused:
    """What is raised of a step that a run does not have.

    Of an item that there is not, no other is suggested, however similar its name: it would be decided about instead.
    `of_all`: from the id of one item's step, what the message may name instead to mean all items.
    """
    text = f"the plan has no step '{name[:200]}'"
    if inside := _inside(name, run.steps, of_all):
        return Refused(f"{text}; {inside}", "UNKNOWN_STEP")
    whole, unstarted = template_of(name), _unstarted(run)
    if path := next((each for each in unstarted if whole and f".{each}".endswith(f".{whole}")), ""):
        shown = f"step '{name[:200]}'" if path == whole else f"{text}; '{path}'"
        return Refused(f"{shown} is inside {_outer(path, run)}", "UNKNOWN_STEP")
    hint = Hints().question(name, {*run.steps, *unstarted} - {name}).replace("?", "? ") or "; "
    return Refused(f"{text}{hint}`plan show` lists its steps", "UNKNOWN_STEP")


def is_field(name: str) -> bool:
    """Whether what should be the id of a step begins with the name of a field of steps."""
    return first_name(name) in aliases(Step, On.EDIT)


def step_to_set(name: str, path: str, run: Run) -> Refused:
    """What is raised of a step whose field `path` is to be set, and that a plan does not have.

    It may be that no step was named: `args.path` for `s2.args.path`.
    """
    if not is_field(name):
        return unknown_step(name, run)
    known = [step.id for step in run.plan.steps]
    place = f"{name}.{path}"[:200]
    which = f", where STEP is {'one of ' if len(known) > 1 else ''}{_listed(known, MAX_CHOICES)}" if known else ""
    return Refused(f"'{place}' names no step; write STEP.{place}{which}", "UNKNOWN_STEP")


def _inside(name: str, known: Collection[str], of_all: Callable[[str], str] | None) -> str:
    """Of a name without what is around it, or with another item: which steps there are; empty if none fits."""
    whole = template_of(name)
    found = [each for each in known if each != whole and f".{template_of(each)}".endswith(f".{whole}")]
    if not whole or not found or name in known:
        return ""
    everyone = dict.fromkeys(pattern_of(each) for each in found)
    first = next(iter(everyone))
    items = [each for each in found if pattern_of(each) == first]
    if not is_pattern(first):
        return f"did you mean '{first}'?" if len(everyone) == 1 else f"it is inside others: {_listed(everyone)}"
    everywhere = f"; '{of_all(items[0])}' names it in all items" if of_all is not None else ""
    return f"there {'is' if len(items) == 1 else 'are'} {_listed(items)}{everywhere}"


def _unstarted(run: Run) -> list[str]:
    """The places in the plan of steps that nothing has started, neither alone nor for an item."""
    begun = set(map(template_of, run.steps))
    return [path for path, _ in walk(run.plan) if path not in begun]


def _outer(path: str, run: Run) -> str:
    """What should start a step, and whether it still may."""
    outer = next((each for each in lineage(path) if each in run.steps), path.partition(".")[0])
    has_ended = outer in run.steps and run.steps[outer].status in DONE
    return f"'{outer}', which {'ended without it' if has_ended else 'has not started it yet'}"


def _listed(names: Collection[str], most: int = MAX_LISTED) -> str:
    return some(list(names), most, "'{}'".format)
