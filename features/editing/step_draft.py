"""A step being edited: the fields of its form, and the merge with a newer version of the plan.

Pure: no I/O. Typed text is never lost: when a newer version arrives, untouched fields take its values; edited fields
keep their text and show the plan's new value beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plansurvive.client.forms.flat import flat_fields
from plansurvive.client.forms.kinds import Choice, Kind
from plansurvive.client.forms.texts import ABSENT, Unreadable
from plansurvive.client.forms.tree import Node
from plansurvive.plans.editing.edits import AddStep, Edit, SetField
from plansurvive.plans.execution.tool_history import shorten
from plansurvive.plans.model import Step, ToolSpec
from plansurvive.plans.model.step_fields import On, names
from plansurvive.plans.plan_diff import same_value
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.plans.views.models import StepView

LEAVE, ALWAYS, NEVER = "leave", "always", "never"


@dataclass(frozen=True)
class Draft:
    """One step's form. Keys are `args.NAME` for arguments and field names for the rest."""

    step: StepView
    version: int
    spec: ToolSpec | None
    is_new: bool = False
    after: str | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Node]:
        """All fields by key, in display order."""
        step = self.step
        own = [_own("id", step.id, "letters, digits, _ and -")] if self.is_new else []
        about = step.description
        kind: Kind = "text" if safe(about) == about else "json"
        own.append(_own("description", about, "what the step does, for people", kind))
        args = {
            f"args.{each.name}": each for each in flat_fields(self.spec.args_schema if self.spec else None, step.args)
        }
        needs = ", ".join(step.depends_on)
        after = _own("dependsOn", needs, "ids of the steps it depends on, separated by commas")
        needed = "needed" if step.requires_approval else "not needed"
        approval = _own("approval", LEAVE, f"currently {needed}", "choice", (LEAVE, ALWAYS, NEVER))
        return {each.name: each for each in own} | args | {"dependsOn": after, "approval": approval}

    def edits(self, texts: Mapping[str, str]) -> list[Edit]:
        """The edits for the changed texts. Raises Unwritable with the fields that cannot be parsed."""
        values = self._read(texts)
        own = {key: value for key, value in values.items() if not key.startswith("args.")}
        args = {
            key.removeprefix("args."): v for key, v in values.items() if key.startswith("args.") and v is not ABSENT
        }
        changed: dict[str, Any] = {}
        if own["description"] != self.step.description:
            changed["description"] = own["description"]
        if not same_value(args, self.step.args):
            changed["args"] = args
        needs = [name for name in own["dependsOn"].replace(",", " ").split() if name]
        if needs != self.step.depends_on:
            changed["dependsOn"] = needs
        if own["approval"] != LEAVE:
            changed["requiresApproval"] = own["approval"] == ALWAYS
        if self.is_new:
            step = {"id": own["id"].strip(), "tool": self.step.tool, "args": args, **changed}
            return [AddStep(op="add", step=step, after=self.after)]
        return [SetField(op="set", step_id=self.step.id, path=path, value=value) for path, value in changed.items()]

    def newer(self, step: StepView, version: int, texts: Mapping[str, str]) -> tuple[Draft, dict[str, str]]:
        """Rebase on a newer version of the plan; returns the new draft and the texts for its form."""
        fresh = replace(self, step=step, version=version, notes={})
        old, new = self.fields, fresh.fields
        notes, merged = {}, {}
        for key, each in new.items():
            was = old.get(key)
            typed = texts.get(key, each.text)
            touched = was is not None and typed != was.text
            merged[key] = typed if touched else each.text
            if touched and was is not None and was.text != each.text and typed != each.text:
                notes[key] = (
                    f"now {line(shorten(each.text)) or 'empty'} in version {version}; saving replaces it with yours"
                )
        for key in texts.keys() - new.keys():
            merged[key] = texts[key]
        return replace(fresh, notes=notes), merged

    def is_same(self, step: StepView) -> bool:
        """Whether everything this form shows is the same in a newer version."""
        return all(getattr(self.step, name) == getattr(step, name) for name in names(Step, On.FORM))

    def _read(self, texts: Mapping[str, str]) -> dict[str, Any]:
        values, wrong = {}, {}
        for key, each in self.fields.items():
            try:
                values[key] = each.read(texts.get(key, each.text), references=True)
            except Unreadable as error:
                wrong[key] = str(error)
        if wrong:
            raise Unwritable(wrong)
        return values


def _own(name: str, value: str, label: str, kind: Kind = "text", choices: tuple[str, ...] = ()) -> Node:
    """A field that every step has."""
    listed = tuple(Choice(each) for each in choices)
    return Node(name, name, kind, {}, required=True, value=value, choices=listed, label=label)


class Unwritable(ValueError):
    """Fields with invalid texts: key -> reason."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = dict(reasons)


def new_step(tool: str, taken: set[str]) -> StepView:
    """An empty step of a tool, with an unused id."""
    number = next(n for n in range(1, len(taken) + 2) if f"step_{n}" not in taken)
    return StepView(id=f"step_{number}", tool=tool)
