"""The form of one step: its fields as texts, and texts as edits. Uses the review screen's draft. Pure.

What a form of the tool's schema does not have (`retry`, `when`, `forEach`, ...) is one text in YAML, `more`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from plansurvive.apps.web.drafts.reviewed import Reviewed
from plansurvive.client.forms.texts import text_of
from plansurvive.client.forms.tree import Node
from plansurvive.features.editing.step_draft import Draft, Unwritable
from plansurvive.plans.editing.edits import AddStep, Edit, SetField
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.model import Step, ToolSpec
from plansurvive.plans.model.step_fields import On, aliases
from plansurvive.plans.text.safe_text import safe
from plansurvive.plans.views.models import StepView
from plansurvive.runtime.plan_files.yaml_reader import parse_yaml

MORE = "more"
TOOL = "tool"
"""Among the other fields only if a person wants another one."""
_IN_FORM = frozenset(("args", "description", "dependsOn", "requiresApproval"))


@dataclass(frozen=True)
class StepForm:
    """One step's form, with what a person typed."""

    draft: Draft
    rest: Mapping[str, Any]
    """The fields of `more`, as the plan has them."""
    texts: Mapping[str, str]
    wrong: Mapping[str, str] = field(default_factory=dict)
    """By field, why its text is no value."""

    @property
    def more(self) -> str:
        """The text of the other fields."""
        return self.texts.get(MORE, yaml_of(self.rest))

    def with_texts(self, texts: Mapping[str, str]) -> StepForm:
        """The form as a person filled it in. Line ends are those of the plan's text: browsers send CRLF."""
        return replace(self, texts={name: text.replace("\r\n", "\n") for name, text in texts.items()})

    def edits(self) -> list[Edit]:
        """The edits for what was changed. Raises Unwritable with the fields that are no values."""
        wrong: dict[str, str] = {}
        edits: list[Edit] = []
        try:
            edits = self.draft.edits(self.texts)
        except Unwritable as error:
            wrong |= error.reasons
        try:
            more = self._more()
        except ValueError as error:
            wrong[MORE] = str(error)
        if wrong:
            raise Unwritable(wrong)
        if self.draft.is_new:
            return [_with_more(each, more) for each in edits]
        names = dict.fromkeys([*self.rest, *more])
        step_id = self.draft.step.id
        names.pop(TOOL if more.get(TOOL) == self.draft.step.tool else "", None)
        return edits + [
            SetField(op="set", step_id=step_id, path=name, value=more.get(name))
            for name in names
            if more.get(name) != self.rest.get(name)
        ]

    def newer(self, other: StepForm) -> StepForm:
        """This form on a newer version of its step: what was typed stays, with a note where both changed."""
        draft, texts = self.draft.newer(other.draft.step, other.draft.version, self.texts)
        typed = self.texts.get(MORE, yaml_of(self.rest))
        if typed == yaml_of(self.rest):
            texts.pop(MORE, None)
        else:
            texts[MORE] = typed
            if other.rest != self.rest:
                notes = {**draft.notes, MORE: f"now\n{yaml_of(other.rest)}"}
                draft = replace(draft, notes=notes)
        return StepForm(draft, other.rest, texts)

    def _more(self) -> dict[str, Any]:
        try:
            found = parse_yaml(self.more) if self.more.strip() else {}
        except InvalidPlan as error:
            raise ValueError(error.problems[0].message) from None
        except Exception as error:  # whatever a parser raises for what a person typed
            raise ValueError(f"neither YAML nor JSON: {error}") from None
        if not isinstance(found, dict):
            raise ValueError("write fields and values, such as `timeout: 60`")
        known = set(aliases(Step, On.EDIT)) - _IN_FORM
        unknown = next((str(name) for name in found if name not in known), None)
        if unknown is not None:
            raise ValueError(f"'{unknown}' is not a field that belongs here; there are {', '.join(sorted(known))}")
        return {str(name): value for name, value in found.items()}


def form_of_step(found: Reviewed, name: str) -> StepForm:
    """The form of a step as the plan has it now. Raises Refused UNKNOWN_STEP."""
    step = found.step(name)
    data = step.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude={"id", "order"})
    rest = {key: value for key, value in data.items() if key not in _IN_FORM and key != TOOL}
    return StepForm(Draft(_view(step, name), found.version, found.tools.get(step.tool)), rest, {})


def form_of_new(found: Reviewed, tool: str, spec: ToolSpec | None, step_id: str, texts: Mapping[str, str]) -> StepForm:
    """The form of a step to add."""
    step = StepView.model_construct(id=step_id, tool=tool)
    return StepForm(Draft(step, found.version, spec, is_new=True), {}, dict(texts))


def unused_id(found: Reviewed) -> str:
    """An id that no step of the plan has."""
    taken = set(found.run.steps) | {step.id for step in found.run.plan.steps}
    return next(f"step_{number}" for number in range(1, len(taken) + 2) if f"step_{number}" not in taken)


def choices_of(each: Node) -> list[tuple[str, str]]:
    """The choices of a field: the text that is sent, and the word for people."""
    return [(text_of("choice", choice.value), str(choice.value)) for choice in each.choices]


def yaml_of(data: Any) -> str:
    """Data as YAML that is read back as the same; as JSON if there is no such YAML, or it would hide something."""
    if data in ({}, []):
        return ""
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    try:
        same = parse_yaml(text) == data and safe(text) == text
    except Exception:  # of a text that this reader, of another version of YAML, does not take
        same = False
    return text if same else json.dumps(data, indent=2)


def _view(step: Step, name: str) -> StepView:
    """The step as the review screen knows it; its id may be that of an instance, so it is not validated."""
    return StepView.model_construct(
        id=name, tool=step.tool, args=step.args, description=step.description, depends_on=list(step.depends_on),
        requires_approval=bool(step.requires_approval),
    )  # fmt: skip


def _with_more(edit: Edit, more: Mapping[str, Any]) -> Edit:
    return edit.model_copy(update={"step": {**edit.step, **more}}) if isinstance(edit, AddStep) else edit
