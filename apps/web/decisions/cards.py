"""Cards as the page lays them out: beside a diff, those of one loop together, with the forms to answer.

Pure. Nothing of a call is cut. Every text that is decided on is written with `exact`, so that nothing in it is hidden.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from plansurvive.client.decide.call_diff import CallDiff
from plansurvive.client.forms.schema_form import Field, SchemaForm
from plansurvive.client.forms.texts import ABSENT
from plansurvive.client.verbs.pending import Pending
from plansurvive.plans.definition.questions import has_default, schema_of
from plansurvive.plans.flow.ids import is_pattern, pattern_of
from plansurvive.plans.proposals import Named
from plansurvive.plans.text.safe_text import exact
from plansurvive.plans.views.steps.call_text import CALL_CHARACTERS

ANSWER = "f"
"""Prefix of the fields of an answer."""
ARGS = "a"
"""Prefix of the fields of arguments."""
HEADING = 120
"""Characters of a question that can be the heading of its card."""
_REPLACED = {"write_file": ("content",), "edit_file": ("oldText", "newText")}
"""Arguments that a complete diff shows as well."""


@dataclass(frozen=True)
class Shown:
    """A card on the page."""

    card: Pending
    diff: CallDiff | None = None
    answer: Field | None = None
    """The form of a question."""

    @property
    def is_long(self) -> bool:
        """Whether it is too long to be shown among others; then nobody decides on it there."""
        return self.card.characters > CALL_CHARACTERS or bool(self.card.unseen)

    @property
    def heading(self) -> str:
        """What is asked: a question itself, if it is one short line."""
        question = exact(str(self.card.args.get("question", "")))
        return question if self.card.is_question and 0 < len(question) <= HEADING else self.card.heading

    @property
    def rows(self) -> list[Named]:
        """What is decided on, less what the diff shows as well; exact texts."""
        return [part for part in self._all if part.name not in self._covered]

    @property
    def covered(self) -> list[Named]:
        """The arguments that the diff shows as well, in full."""
        return [part for part in self._all if part.name in self._covered]

    @property
    def _covered(self) -> Sequence[str]:
        is_whole = self.diff is not None and self.diff.kind in ("created", "changed") and bool(self.diff.lines)
        return _REPLACED.get(self.card.tool, ()) if is_whole else ()

    @property
    def _all(self) -> list[Named]:
        card = self.card
        parts = card.subject if card.call is None else [Named(*each) for each in card.call.items()]
        return [Named(exact(name), _text(value)) for name, value in (*parts, *card.stored, *card.undoing)]


@dataclass(frozen=True)
class Group:
    """Items of one loop that ask for the same step."""

    pattern: str
    """Fits all of them, as in `resize[*]`."""
    cards: tuple[Shown, ...]
    more: int = 0
    """Further ones that are not listed, and are not decided about with these."""

    @property
    def is_one(self) -> bool:
        """Whether there is only one, so that there is nothing to decide together."""
        return len(self.cards) == 1 and not self.more

    @property
    def heading(self) -> str:
        """What is asked, for one or for all."""
        first = self.cards[0]
        return first.heading if self.is_one else f"Approve {exact(first.card.tool)} for {len(self.cards)} items?"

    @property
    def is_long(self) -> bool:
        """Whether all of them together are too long to be decided about at once."""
        together = sum(each.card.characters for each in self.cards)
        return together > CALL_CHARACTERS or any(each.is_long for each in self.cards)

    @property
    def always(self) -> str:
        """What a remembered approval of one of them would cover."""
        return next((each.card.always for each in self.cards if each.card.always), "")


def groups(cards: Sequence[Shown]) -> list[Group]:
    """The cards, those of one step in a loop together, in the order of the oldest of each group."""
    places: dict[tuple[str, str], int] = {}
    for number, each in enumerate(cards):
        places.setdefault(_together(each, number), number)
    ordered = sorted(enumerate(cards), key=lambda pair: places[_together(pair[1], pair[0])])
    found = []
    for _, pairs in groupby(ordered, key=lambda pair: places[_together(pair[1], pair[0])]):
        members = tuple(each for _, each in pairs)
        pattern = pattern_of(members[0].card.step_id)
        found.append(Group(pattern, members, sum(each.card.more for each in members)))
    return found


def _together(shown: Shown, number: int) -> tuple[str, str]:
    """What cards of one group have in common; a card that stands alone has its own number."""
    pattern = pattern_of(shown.card.step_id)
    if shown.card.kind != "approval" or not is_pattern(pattern):
        return shown.card.plan_id, f"\0{number}"
    return shown.card.plan_id, pattern


def answer_form(args: Mapping[str, Any]) -> SchemaForm:
    """The form of a question, filled in with its default."""
    schema = schema_of(args)
    if args.get("choices") is None and args.get("schema") is None:
        schema |= {"format": "multiline"}
    return SchemaForm(schema, args["default"] if has_default(args) else ABSENT, name=ANSWER, title="Answer")


def args_form(schema: Mapping[str, Any] | None, args: Mapping[str, Any]) -> SchemaForm:
    """The form of a tool's arguments, as they are; without the tool's schema, they are written as JSON."""
    return SchemaForm(schema or {}, dict(args), name=ARGS, title="Arguments", fill=False)


def _text(value: Any) -> str:
    return exact(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str))
