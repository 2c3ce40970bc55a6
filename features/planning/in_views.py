"""What a person is asked about a recovery, in words: all of the LLM's choice, and nothing as raw JSON of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.plans.in_views import InViews
from plansurvive.plans.proposals import Named, Proposal, named, whole
from plansurvive.plans.text.lists import number_of

KIND = "recovery"


def _parts(step_id: str, tool: str, args: Mapping[str, Any]) -> list[Named]:
    """The LLM's choice about a failed step in words, and the calls that it leads to."""
    choice, rest = args.get(KIND), {name: each for name, each in args.items() if name not in (KIND, "failure")}
    if not isinstance(choice, Mapping):
        return whole(KIND, args)
    action, given = choice.get("action"), {name: each for name, each in choice.items() if name != "action"}
    inserted, changed = given.pop("steps", None), given.pop("args", None)
    steps = inserted if isinstance(inserted, list) else []
    words = {
        "retry": "call it again, with other arguments" if changed is not None else "call it again, unchanged",
        "skip": "skip it; steps that do not use its value continue",
        "insert": f"insert {number_of(len(steps), 'step')}, then call it again",
    }
    parts = [Named(KIND, f"of step '{step_id}': {words.get(str(action), action)}")]
    parts += [Named("reason", given.pop("reason"))] if given.get("reason") else []
    parts += [Named("failure", args["failure"])] if args.get("failure") else []
    call = rest.pop("call", None)
    parts += [Named("tool", tool), *named(call.get("args") if isinstance(call, Mapping) else changed)]
    for number, step in enumerate(steps, 1):
        parts += _inserted(f"{number}.", step)
    return [*parts, *(Named(name, each) for name, each in given.items() if each), *named(rest)]


def _inserted(number: str, step: Any) -> list[Named]:
    """A step that is to be inserted: its id, its tool, every argument and every other field."""
    if not isinstance(step, Mapping):
        return [Named(number, step)]
    rest = {name: each for name, each in step.items() if name not in ("id", "tool", "args")}
    head = [Named(f"{number} step", step.get("id")), Named(f"{number} tool", step.get("tool"))]
    args = [Named(f"{number} {name}", each) for name, each in named(step.get("args"))]
    return [
        *head,
        *args,
        *(Named(f"{number} {name}", each) for name, each in rest.items() if each not in (None, "", [], {})),
    ]


PROPOSAL = Proposal(
    reason="an LLM proposes how to recover the step, which failed",
    heading="Approve a recovery?",
    wanted="approval of a recovery",
    approving="approves the recovery of",
    awaited="a recovery of",
    parts=_parts,
)
IN_VIEWS = InViews("planning", proposals={KIND: PROPOSAL})
