"""The form for editing or adding a step. Typed text stays until the plan accepts it or the user leaves with escape.

A validation error is shown at its field. If the plan is at a newer version, the form shows that version and the typed
text stays; saving again applies it on top.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Select, Static

from plansurvive.apps.review.rows import news
from plansurvive.apps.review.text_field import Typing
from plansurvive.client.forms.texts import text_of
from plansurvive.client.forms.tree import Node
from plansurvive.features.editing.step_draft import Draft, Unwritable
from plansurvive.plans.editing.edits import Edit
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.plans.views.models import PlanView, StepView

Save = Callable[[list[Edit], int], Awaitable[object]]


class FieldRow(Vertical):
    """A field with its label and a remark, such as an error."""

    def __init__(self, key: str, field: Node) -> None:
        super().__init__(classes="field")
        self.key, self._field = key, field

    def compose(self) -> ComposeResult:
        """Label, input widget and a line for remarks."""
        yield Static(Text.assemble((line(self._field.name), "bold"), f"  {self._field.label}", no_wrap=True))
        yield self._widget()
        yield Static("", classes="remark")

    @property
    def text(self) -> str:
        """The current text of the input."""
        widget = self.query_one("#value", Widget)
        if isinstance(widget, Select):
            return "" if widget.value is Select.NULL else str(widget.value)
        return widget.text if isinstance(widget, Typing) else ""

    def show(self, text: str, remark: str) -> None:
        """Set the text, if it differs, and the remark below it."""
        widget = self.query_one("#value", Widget)
        if self.text != text:
            if isinstance(widget, Select) and text not in ("", *(choice for _, choice in self._options)):
                remark = f"now {line(text)} in the plan, which is not one of the choices; saving replaces it"
            elif isinstance(widget, Select):
                widget.value = text or Select.NULL
            elif isinstance(widget, Typing):
                widget.text = text
        below = self.query_one(".remark", Static)
        below.update(Text(remark))
        below.display = bool(remark)

    def _widget(self) -> Widget:
        field = self._field
        if field.kind != "choice":
            return Typing(field.text, id="value")
        value = field.text or Select.NULL
        return Select(
            self._options, value=value, allow_blank=not field.required, prompt="not given", id="value", compact=True
        )

    @property
    def _options(self) -> list[tuple[str, str]]:
        """The choices: what people read, and the text of the field."""
        values = [(choice.value, text_of("choice", choice.value)) for choice in self._field.choices]
        return [(value if isinstance(value, str) else text, text) for value, text in values]


class EditScreen(ModalScreen[bool]):
    """One step in a form; returns True if it was saved."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", priority=True),
        Binding("escape", "leave"),
    ]

    def __init__(self, draft: Draft, view: Callable[[], PlanView], save: Save) -> None:
        super().__init__()
        self._draft, self._view, self._save = draft, view, save
        self._saving = self._sure = False

    def compose(self) -> ComposeResult:
        """Heading, fields, remarks, keys."""
        step = self._draft.step
        verb = "Add a step" if self._draft.is_new else f"Step {step.id}"
        with Vertical(classes="box tall"):
            yield Static(Text(f"{verb}  {line(step.tool)}  (version {self._draft.version})"), classes="title")
            with VerticalScroll(can_focus=False):
                for key, field in self._draft.fields.items():
                    yield FieldRow(key, field)
            yield Static("", id="said")
            yield Static(Text("ctrl+s save   tab next field   ctrl+j new line   escape back"), classes="hint")

    def on_mount(self) -> None:
        """Focus the first argument: it is what people change most often."""
        self._mark({})
        rows = list(self.query(FieldRow))
        chosen = next((row for row in rows if row.key.startswith("args.")), rows[0])
        chosen.query_one("#value", Widget).focus()

    def on_typing_entered(self) -> None:
        """Enter in a one-line text moves to the next field."""
        self.focus_next()

    def action_save(self) -> None:
        """Send the changes."""
        if not self._saving:
            self._saving = True
            self.run_worker(self._send(), exclusive=True)

    def action_leave(self) -> None:
        """Close without saving; asks once more if there are changes."""
        if self._texts() == {key: field.text for key, field in self._draft.fields.items()} or self._sure:
            self.dismiss(False)
            return
        self._sure = True
        self._say("You have unsaved changes: press escape again to discard them, ctrl+s to save.")

    def plan_changed(self) -> None:
        """The plan changed while the form is open: say so and keep the typed text."""
        view = self._view()
        if view.version == self._draft.version:
            return
        step = self._step(view)
        if self._draft.is_new or (step is not None and self._draft.is_same(step)):
            self._take(step or self._draft.step, view)
        elif step is None:
            self._say(f"This step was removed: {news(view, self._draft.version)}")
        else:
            self._say(f"This step was changed: {news(view, self._draft.version)}. ctrl+s shows the new values first.")

    async def _send(self) -> None:
        try:
            edits = self._draft.edits(self._texts())
            if edits:
                await self._save(edits, self._draft.version)
            self.dismiss(bool(edits))
        except Unwritable as error:
            self._mark(error.reasons)
            self._say("Not saved: see the fields marked ✗.")
        except InvalidPlan as error:
            self._show_problems(error)
        except PlanError as error:
            self._refused(error)
        finally:
            self._saving = False

    def _refused(self, error: PlanError) -> None:
        step, view = self._step(self._view()), self._view()
        if error.code != "STALE_VERSION" or (step is None and not self._draft.is_new):
            self._say(f"Not saved: {safe(error.message)}")
            return
        since = self._draft.version
        self._take(step or self._draft.step, view)
        self._say(f"Not saved, the plan has changed: {news(view, since)}. Check it; ctrl+s saves your changes on top.")

    def _take(self, step: StepView, view: PlanView) -> None:
        """Rebase the form on a newer version, keeping the typed text."""
        self._draft, texts = self._draft.newer(step, view.version, self._texts())
        for row in self.query(FieldRow):
            row.show(texts.get(row.key, row.text), self._draft.notes.get(row.key, ""))
        verb = "Add a step" if self._draft.is_new else f"Step {step.id}"
        self.query_one(".title", Static).update(Text(f"{verb}  {line(step.tool)}  (version {view.version})"))

    def _show_problems(self, error: InvalidPlan) -> None:
        keys = {row.key for row in self.query(FieldRow)}
        here: dict[str, str] = {}
        rest = []
        for problem in error.problems:
            key = ".".join((problem.field or "").split(".")[:2])
            mine = problem.step_id in (self._draft.step.id, self._texts().get("id"))
            if mine and key in keys:
                here[key] = line(problem.message)
            else:
                rest.append(line(problem.text))
        self._mark(here)
        self._say("Not saved: " + ("; ".join(rest) or "see the fields marked ✗."))

    def _mark(self, reasons: Mapping[str, str]) -> None:
        for row in self.query(FieldRow):
            reason = reasons.get(row.key)
            row.show(row.text, f"✗ {reason}" if reason else self._draft.notes.get(row.key, ""))

    def _say(self, sentence: str) -> None:
        self.query_one("#said", Static).update(Text(sentence))

    def _step(self, view: PlanView) -> StepView | None:
        return view.step(self._draft.step.id)

    def _texts(self) -> dict[str, str]:
        return {row.key: row.text for row in self.query(FieldRow)}
