"""Runs of loops and blocks that have begun, and edits of them with the real functions, put into effect at once."""

from __future__ import annotations

from typing import Any

from plansurvive.plans.editing.apply_edits import Revised, revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.execution.revision import put_into_effect
from plansurvive.plans.run import Run
from tests.plans.building import NOW
from tests.plans.flow.player import Player, note, plan


def change(played: Player, *edits: dict[str, Any], **fields: Any) -> Revised:
    """Apply edits, as the workflow does."""
    message = Edits.model_validate({"edits": list(edits), "by": "ann", **fields})
    revised = revise(played.run, message, NOW)
    put_into_effect(played.schedule, revised, NOW)
    return revised


def setting(step_id: str, path: str, value: Any) -> dict[str, Any]:
    """An edit of one field."""
    return {"op": "set", "stepId": step_id, "path": path, "value": value}


def pictures(*keys: str, asks: bool = True, more: tuple[dict[str, Any], ...] = (), **fields: Any) -> Run:
    """A loop over pictures: each is read, and then a thumbnail is made of it, which a person may have to approve."""
    thumb = note("thumb", "small {{item}}", "load") | ({"requiresApproval": True} if asks else {})
    each = {"items": list(keys), "key": "@"}
    return plan(
        {"id": "resize", "forEach": each, "steps": [note("load", "{{item}}"), thumb, *more]},
        note("after", "$resize"),
        **fields,
    )


def begun(*keys: str, **fields: Any) -> Player:
    """Such a run, in which every thumbnail awaits approval."""
    return Player(pictures(*(keys or ("cat.png", "dog.png", "eel.png")), **fields)).play()


def approve(played: Player, *names: str) -> None:
    """Go on until they ask, approve what each shows, and go on."""
    played.play()
    for name in names:
        played.decide(name, digest=played.run.steps[name].digest)
    played.play()
