"""A card: what is asked of a person about a step, with all that any view of it shows.

`plans.views.progress.pending` makes it of a run; JSON data is the card as it is. A view lays it out and computes
nothing: what it is called, what is in it, what is unusual, which commands decide. Nothing in it is cut. Texts of plans
and tools are as they are: a view escapes them (`plans.text.safe_text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import Field, PrivateAttr

from plansurvive.plans.definition.questions import as_typed, on_timeout
from plansurvive.plans.in_views import NO_VIEWS, Viewer, ViewSet, Way
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Value
from plansurvive.plans.model.identities import identity
from plansurvive.plans.proposals import Named, named, whole
from plansurvive.plans.step_state import Consent
from plansurvive.plans.text.safe_text import exact, exact_name, line, quoted, unusual

CALLS = ("approval", "early", "")
"""Kinds of cards that are about a call of the step's tool; others are about a proposal, or ask a question."""
QUESTION = "question"
"""Kind of a card that wants an answer; its `args` are the question with all that belongs to it."""
OR = "   or: "
"""Between the commands that approve and that deny."""


class Card(Value):
    """A pending decision."""

    step_id: str
    kind: str
    tool: str
    description: str = ""
    item: str = Field(default="", description="The items of the loops around the step, cut: `cat.png, item 3 of 20`.")
    args: dict[str, Any] = Field(default_factory=dict, description="Arguments, references filled in, never cut.")
    queue: str | None = Field(default=None, description="Task queue whose workers make the call.")
    workspace: str = Field(default="", description="Directory it works in.")
    values: dict[str, str] = Field(default_factory=dict, description="Those of `large` in full; set by clients.")
    change: dict[str, str] = Field(
        default_factory=dict, exclude=True,
        description="Texts about the file that it would change, by row: a diff, in place of the argument of that name;"
        " set by clients that can read the file.",
    )  # fmt: skip
    unusual: list[str] = Field(default_factory=list, description="What is unusual in the texts; set by clients.")
    network: bool = Field(default=False, description="The call asks for network access.")
    large: dict[str, LargeValue] = Field(
        default_factory=dict, description="By step, values that the call inserts and that are stored outside history."
    )
    digest: str = Field(default="", description="Digest of all this: a decision that names it is about nothing else.")
    as_asked: bool = Field(default=False, description="It cannot be approved with other arguments.")
    changed: bool = Field(default=False, description="It asked for another call before, or an edit changed it.")
    asker: str = Field(default="", description="Which plan or agent asks, and who started it.")
    reasons: list[str] = Field(default_factory=list, description="Why it asks, in sentences.")
    consents: list[Consent] = Field(
        default_factory=list, description="Who must approve, and who has, for each rule that says so."
    )
    notified: list[str] = Field(
        default_factory=list, description="Targets of notifications that a message about it is for."
    )
    undo: dict[str, Any] = Field(
        default_factory=dict, description="`tool` and `args` of the step's undo, if the approval covers that as well."
    )
    always: str = Field(default="", description="What `remember` would approve as well; empty: it is not possible.")
    since: datetime | None = None
    deadline: datetime | None = None
    version: int = 1
    _views: ViewSet = PrivateAttr(default=NO_VIEWS)

    def model_post_init(self, context: Any) -> None:
        """Take what features add to views from the context of validation, if it is that."""
        if isinstance(context, ViewSet):
            self._views = context

    @classmethod
    def of(cls, views: ViewSet, **fields: Any) -> Self:
        """A card whose proposals features describe in words. Raises pydantic's ValidationError."""
        return cls.model_validate(fields, context=views)

    @property
    def views(self) -> ViewSet:
        """What features add to views: their words for what is proposed."""
        return self._views

    @property
    def is_question(self) -> bool:
        """Whether an answer is wanted, and not an approval."""
        return self.kind == QUESTION

    @property
    def is_call(self) -> bool:
        """Whether it is about a call of the step's tool."""
        return self.kind in CALLS

    @property
    def takes_args(self) -> bool:
        """Whether it may be approved with other arguments."""
        return self.is_call and not self.as_asked

    @property
    def heading(self) -> str:
        """What is to be decided: `Approve delete_file?`."""
        if self.is_question:
            return "A question"
        proposal = self._views.proposals.get(self.kind)
        return proposal.heading if proposal else f"Approve {self.tool if self.is_call else self.kind}?"

    @property
    def to(self) -> str:
        """Who should answer the question; empty: nobody in particular."""
        return str(self.args.get("to") or "") if self.is_question else ""

    def barred(self, viewer: Viewer) -> str:
        """Why this person may not approve or answer it; empty if they may."""
        if self.is_question:
            is_for = not self.to or identity(self.to.strip()) == identity(viewer.name.strip())
            return "" if is_for else f"it asks {self.to}"
        return self._views.barred(self, viewer)

    def ways(self, viewer: Viewer) -> list[Way]:
        """What this person may do beside approving and denying."""
        return [] if self.is_question else self._views.ways(self, viewer)

    @property
    def wanted(self) -> str:
        """What the step awaits: `approval`, `an answer of ann`."""
        return wanted(self.kind, self.to, self._views)

    @property
    def warnings(self) -> list[str]:
        """What is unusual in the texts, each with the argument it is in; safe to show."""
        texts: list[tuple[str, Any]] = [("tool", self.tool), ("description", self.description), *self.args.items()]
        texts += [(f"undo {name}", value) for name, value in self._undo_args]
        texts += [(f"value of '{name}'", self.values.get(name, value.preview)) for name, value in self.large.items()]
        return unusual_in(texts)

    @property
    def why(self) -> list[Named]:
        """Who asks, and for which reasons."""
        asks = [Named("asks", self.asker)] if self.asker else []
        return asks + [Named("because", reason) for reason in self.reasons]

    @property
    def subject(self) -> list[Named]:
        """What is decided about: the tool (its arguments are `call`), all of a proposal, or a question."""
        if self.call is not None:
            return [Named("tool", self.tool)]
        if self.is_question:
            rest = {name: each for name, each in self.args.items() if name != QUESTION}
            return [Named(QUESTION, self.args[QUESTION]), *self._question(rest)]
        proposal = self._views.proposals.get(self.kind)
        return proposal.parts(self.step_id, self.tool, self.args) if proposal else whole(self.kind, self.args)

    @property
    def call(self) -> dict[str, Any] | None:
        """The arguments of the call; None where the subject is all."""
        return self.args if self.is_call or self.kind not in self.args else None

    @property
    def places(self) -> list[Named]:
        """Where the call is made, and until when it can be decided."""
        found = [("what", self.description), ("item", self.item)]
        if self.is_question:
            found = [each for each in found if each[1] != self.args.get(QUESTION)]
        else:
            found += [
                ("queue", self.queue or ""),
                ("workspace", self.workspace),
                ("notified", ", ".join(self.notified)),
            ]
            found += [("time limit", _clock(self.deadline))] if self.deadline else []
        return [Named(name, text) for name, text in found if text]

    @property
    def undoing(self) -> list[Named]:
        """The undo that the approval covers, whole; empty if it covers none."""
        if not self.undo:
            return []
        return [
            Named("undo", self.undo.get("tool")),
            *(Named(f"undo {name}", value) for name, value in self._undo_args),
        ]

    @property
    def _undo_args(self) -> list[Named]:
        return named(self.undo.get("args"))

    @property
    def late(self) -> str:
        """What happens when nobody answers the question in time; empty if there is no limit."""
        if not self.is_question or self.args.get("timeout") is None:
            return ""
        ways = {"default": f"the default counts: {as_typed(self.args.get('default'))}", "skip": "the step is skipped"}
        return ways.get(on_timeout(self.args), "the step fails")

    @property
    def characters(self) -> int:
        """Length of the texts."""
        return sum(len(text) for text in texts_in([self.args, self.undo])) + len(self.description)

    @property
    def stored(self) -> list[Named]:
        """The large values that the call inserts when it starts: whole, or the beginnings of those in `unseen`."""
        return [
            Named(f"value of '{name}'", self.values[name])
            if name in self.values
            else Named(f"first part of '{name}'", value.preview)
            for name, value in self.large.items()
        ]

    @property
    def unseen(self) -> list[str]:
        """A sentence on each large value that could not be read: the call would be decided on without it."""
        return [
            f"'{exact(name)}' is a large value that is filled in when the call starts: {value.bytes:,} bytes,"
            f" sha256 {value.sha256}; see all of it: plan pending PLAN STEP --full"
            for name, value in self.large.items()
            if name not in self.values
        ]

    def command(self, plan: str) -> str:
        """The command that approves or answers; it names the digest where the plan could not know what is meant."""
        return command(plan, self.step_id, self.kind, self.digest if self.changed else "")

    def commands(self, plan: str) -> str:
        """The same, and the command that denies."""
        return commands(plan, self.step_id, self.kind, self.digest if self.changed else "")

    def _question(self, rest: dict[str, Any]) -> list[Named]:
        """What belongs to a question, as its author wrote it but for the time limit."""
        seconds = rest.pop("timeout", None)
        rest.pop("onTimeout", None) if seconds is not None else None
        until = f" (until {_clock(self.deadline)})" if self.deadline else ""
        limit = [Named("time limit", f"{seconds} s{until}, then {self.late}")] if seconds is not None else []
        return [*(Named(name, _listed(each)) for name, each in rest.items() if each is not None), *limit]


def _listed(value: Any) -> Any:
    """A list of one-line texts with a row for each; any other value as it is."""
    is_plain = isinstance(value, list) and all(isinstance(each, str) and each.isprintable() for each in value)
    return "\n".join(value) if is_plain and value else value


def wanted(kind: str, to: str = "", views: ViewSet = NO_VIEWS) -> str:
    """What a step awaits that asks this kind of thing, after `awaiting`; `to`: who should answer."""
    if kind in (QUESTION, "answer"):
        return f"an answer of {exact(to)}" if to else "an answer"
    if kind in CALLS:
        return "approval"
    return views.proposals[kind].wanted if kind in views.proposals else f"a decision: {exact(kind)}"


def command(plan: str, step_id: str, kind: str, digest: str = "") -> str:
    """The command that approves or answers; safe to print. `digest`: of exactly what."""
    step = quoted(step_id)
    if kind in (QUESTION, "answer"):
        return f"plan answer {line(plan)} {step} VALUE"
    return f"plan approve {line(plan)} {step}{f' --digest {digest}' if digest else ''}"


def commands(plan: str, step_id: str, kind: str, digest: str = "") -> str:
    """The same, and the command that denies."""
    found = command(plan, step_id, kind, digest)
    if kind in (QUESTION, "answer"):
        return found
    return f"{found}{OR}plan deny {line(plan)} {quoted(step_id)} --comment WHY"


def unusual_in(values: Iterable[tuple[str, Any]]) -> list[str]:
    """What is unusual in named values: `command: U+200B ZERO WIDTH SPACE: invisible`."""
    found = []
    for name, value in values:
        found += [f"name of an argument: {each}" for each in unusual(name)]
        found += [f"{exact_name(name)}: {each}" for text in texts_in(value) for each in unusual(text)]
    return list(dict.fromkeys(found))


def texts_in(value: Any) -> Iterable[str]:
    """All texts of a JSON value, names of fields included."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack += [part for pair in item.items() for part in pair][::-1]
        elif isinstance(item, list):
            stack += item[::-1]


def _clock(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")
