"""What the page shows of a waiting decision: who asks what and why, the whole call, and what may be answered.

Pure. Nothing of a call is cut. Every text that is decided on is written with `exact`, so that nothing in it is hidden.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from client.decide.call_diff import CallDiff
from client.forms.texts import ABSENT
from client.pending import Pending
from client.web.schema_form import Field, SchemaForm
from plans.flow.ids import is_pattern, pattern_of
from plans.views.call_text import CALL_CHARACTERS, CALLS, characters, proposal, warnings_of
from plans.views.pending import QUESTION
from plans.views.safe_text import exact
from plans.waiting.questions import as_typed, has_default, on_timeout, schema_of

ANSWER = "f"
"""Prefix of the fields of an answer."""
ARGS = "a"
"""Prefix of the fields of arguments."""
_REPLACED = {"write_file": ("content",), "edit_file": ("oldText", "newText")}
"""Arguments that a complete diff shows as well."""
_TITLES = {"recovery": "Approve a recovery?", "budget": "Exceed the budget?", QUESTION: "A question"}


class Row(NamedTuple):
    """A named text, exactly."""

    name: str
    text: str

    @property
    def lines(self) -> int:
        """Number of lines."""
        return self.text.count("\n") + 1


@dataclass(frozen=True)
class Card:
    """One waiting decision."""

    item: Pending
    diff: CallDiff | None = None
    answer: Field | None = None
    """The form of a question."""

    @property
    def key(self) -> str:
        """Names what is asked: another call of the step has another key. Safe in an HTML id."""
        parts = [self.item.plan_id, self.item.step_id, self.item.kind, self.item.digest or str(self.item.version)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]

    @property
    def is_question(self) -> bool:
        """Whether an answer is wanted, and not an approval."""
        return self.item.kind == QUESTION

    @property
    def is_call(self) -> bool:
        """Whether it is about a call of the step's tool, and not about a proposal."""
        return self.item.kind in CALLS

    @property
    def title(self) -> str:
        """What is to be decided."""
        return _TITLES.get(self.item.kind, f"Approve {self.item.tool}?")

    @property
    def is_long(self) -> bool:
        """Whether it is too long to be shown among others; then nobody decides on it there."""
        return characters(self.item) > CALL_CHARACTERS or any(name not in self.item.values for name in self.item.large)

    @property
    def warnings(self) -> list[str]:
        """What is unusual in the texts."""
        return [exact(each) for each in warnings_of(self.item)]

    @property
    def rows(self) -> list[Row]:
        """What is decided on, less what the diff shows as well."""
        return [row for row in self._all if row.name not in self._covered]

    @property
    def covered(self) -> list[Row]:
        """The arguments that the diff shows as well, in full."""
        return [row for row in self._all if row.name in self._covered]

    @property
    def places(self) -> list[Row]:
        """Where the call is made."""
        item = self.item
        found = [("step", item.step_id), ("what", item.description), ("item", item.item), ("tool", item.tool)]
        found += [("workspace", item.workspace), ("queue", item.queue or "")]
        found += [("network", "asks for network access")] if item.network else []
        shown = [] if self.is_question else found
        return [Row(name, exact(text)) for name, text in shown if text]

    @property
    def question(self) -> str:
        """What is asked."""
        return exact(str(self.item.args.get("question", "")))

    @property
    def to(self) -> str:
        """Who should answer."""
        return exact(str(self.item.args.get("to") or ""))

    @property
    def in_time(self) -> str:
        """What happens when nobody answers in time; empty if there is no limit."""
        if not self.is_question or self.item.args.get("timeout") is None:
            return ""
        default = exact(as_typed(self.item.args.get("default")))
        ways = {"default": f"the default counts: {default}", "skip": "the step is skipped"}
        return ways.get(on_timeout(self.item.args), "the step fails")

    @property
    def always(self) -> str:
        """What a remembered approval would cover as well; empty if it cannot be remembered."""
        return exact(self.item.always) if self.item.kind == "approval" else ""

    @property
    def asker(self) -> str:
        """Which plan or agent asks, and who started it."""
        return exact(self.item.asker)

    @property
    def reasons(self) -> list[str]:
        """Why it asks."""
        return [exact(each) for each in self.item.reasons]

    @property
    def _covered(self) -> Sequence[str]:
        is_whole = self.diff is not None and self.diff.kind in ("created", "changed") and bool(self.diff.lines)
        return _REPLACED.get(self.item.tool, ()) if is_whole else ()

    @property
    def _all(self) -> list[Row]:
        proposed = proposal(self.item)
        given: Iterable[tuple[str, Any]] = proposed or self.item.args.items()
        rows = [Row(exact(str(name)), _text(value)) for name, value in given]
        for name, value in self.item.large.items():
            text = self.item.values.get(name)
            about = f"{value.bytes:,} bytes, sha256 {value.sha256}, filled in when the call starts"
            shown = exact(text) if text is not None else f"{about}; it begins with:\n{exact(value.preview)}"
            rows.append(Row(f"value of '{exact(name)}'", shown))
        return rows


@dataclass(frozen=True)
class Group:
    """Items of one loop that ask for the same step."""

    pattern: str
    """Fits all of them, as in `resize[*]`."""
    cards: tuple[Card, ...]
    more: int = 0
    """Further ones that are not listed, and are not decided about with these."""

    @property
    def is_one(self) -> bool:
        """Whether there is only one, so that there is nothing to decide together."""
        return len(self.cards) == 1 and not self.more

    @property
    def is_long(self) -> bool:
        """Whether all of them together are too long to be decided about at once."""
        return sum(characters(card.item) for card in self.cards) > CALL_CHARACTERS or any(c.is_long for c in self.cards)

    @property
    def always(self) -> str:
        """What a remembered approval of one of them would cover."""
        return next((card.always for card in self.cards if card.always), "")


def groups(cards: Sequence[Card]) -> list[Group]:
    """The cards, those of one step in a loop together, in the order of the oldest of each group."""
    places: dict[tuple[str, str], int] = {}
    for number, card in enumerate(cards):
        places.setdefault(_together(card, number), number)
    ordered = sorted(enumerate(cards), key=lambda pair: places[_together(pair[1], pair[0])])
    found = []
    for _, pairs in groupby(ordered, key=lambda pair: places[_together(pair[1], pair[0])]):
        members = tuple(card for _, card in pairs)
        pattern = pattern_of(members[0].item.step_id)
        found.append(Group(pattern, members, sum(card.item.more for card in members)))
    return found


def _together(card: Card, number: int) -> tuple[str, str]:
    """What cards of one group have in common; a card that stands alone has its own number."""
    pattern = pattern_of(card.item.step_id)
    if card.item.kind != "approval" or not is_pattern(pattern):
        return card.item.plan_id, f"\0{number}"
    return card.item.plan_id, pattern


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
