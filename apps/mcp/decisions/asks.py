"""What a person is asked as an MCP elicitation: the whole call, exactly and safely written, and the form of the answer.

Pure. A request's key names exactly what is decided on (plan, step, kind, digest, since when), so that a response to it
is about nothing else; after a reply that did not settle it, the next request has the next number. What is too long to
be read in a form is not asked: it is decided elsewhere.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from plansurvive.apps.mcp.decisions.forms import AnswerForm, answer_form
from plansurvive.client.verbs.pending import Pending
from plansurvive.plans.text.safe_text import exact
from plansurvive.plans.views.models.card import QUESTION
from plansurvive.plans.views.steps.call_text import call_rows, value_rows

MAX_CHARACTERS = 20_000
"""Length of the text of a request. Nothing in it is cut: what is longer is decided elsewhere."""
MAX_COMMENT = 2_000
DECISION, COMMENT = "decision", "comment"
"""Fields of the form of an approval or a review."""
REVIEW = "review"
"""Kind of the request to begin or reject a draft; the others are kinds of pending decisions."""
APPROVE, ALWAYS, DENY, BEGIN, REJECT, LATER = "approve", "always", "deny", "begin", "reject", "later"
KEY = re.compile(r"(?P<base>[a-z]{1,20}-[0-9a-f]{40})-(?P<number>[0-9]{1,3})")


@dataclass(frozen=True)
class Ask:
    """One request to a person."""

    base: str
    """Names what is decided on; the key of a request is this and a number."""
    plan_id: str
    step_id: str
    """Empty: the plan as a whole (a review)."""
    kind: str
    message: str
    schema: dict[str, Any]
    digest: str = ""
    version: int = 1
    form: AnswerForm | None = None
    """Of a question: how its answer is read."""

    @property
    def is_too_long(self) -> bool:
        """Whether it cannot be read in a form as a whole."""
        return len(self.message) + len(json.dumps(self.schema, ensure_ascii=False)) > MAX_CHARACTERS

    def key(self, replies: int) -> str:
        """The key of the request, after so many replies that did not settle it."""
        return f"{self.base}-{replies}"

    def request(self, why: str = "") -> dict[str, Any]:
        """The request `elicitation/create`, in form mode. `why`: what was wrong with the last reply."""
        again = f"Not accepted: {exact(why)}\n\n" if why else ""
        params = {"mode": "form", "message": again + self.message, "requestedSchema": self.schema}
        return {"method": "elicitation/create", "params": params}


def ask_of(item: Pending) -> Ask:
    """The request for a pending decision: an answer of a question, an approval of anything else."""
    kind, form = ("question", answer_form(item.args)) if item.is_question else ("approval", None)
    schema = form.schema if form is not None else _choices(item)
    return Ask(
        f"{kind}-{item.key}", item.plan_id, item.step_id, item.kind, _message(item, form), schema,
        item.digest, item.version, form,
    )  # fmt: skip


def ask_to_begin(plan_id: str, title: str, version: int, text: str) -> Ask:
    """The request to begin a draft that is in review. `text`: the whole plan, as `plan show` prints it."""
    rows = [f"Plan {exact(plan_id)} is in review; nothing starts until a person approves its start.", ""]
    rows += [*value_rows("title", title), *exact(text).split("\n"), ""]
    rows += [f"This is version {version}; once started, it runs as shown, and asks again where approval is needed."]
    options = {BEGIN: "Begin this plan", REJECT: "Reject it: the plan is cancelled", LATER: "Decide later"}
    key = Pending(plan_id=plan_id, step_id="", kind=REVIEW, tool="", version=version).key
    form = _form(options, "What to do with the draft")
    return Ask(f"{REVIEW}-{key}", plan_id, "", REVIEW, "\n".join(rows), form, version=version)


def _message(item: Pending, form: AnswerForm | None) -> str:
    """All that is decided on. What the fields of a form say by themselves is not said twice."""
    head = exact(str(item.args.get(QUESTION, ""))) if item.is_question else exact(item.heading)
    rows = [head, "", *value_rows("plan", item.plan_id), *value_rows("step", item.step_id)]
    if form is None:
        rows += call_rows(item)
    else:
        drawn = {QUESTION} if form.is_json else {QUESTION, "schema"}
        parts = [part for part in (*item.subject, *item.places) if part.name not in drawn]
        rows += [f"! {warning}" for warning in item.warnings]
        rows += [row for name, value in parts for row in value_rows(name, value)]
    rows += [f"! {item.more} more items of this step ask as well; this is about this one alone"] if item.more else []
    return "\n".join([*rows, *(value_rows("digest", item.digest) if item.digest else [])])


def _choices(item: Pending) -> dict[str, Any]:
    options = {APPROVE: "Approve this call" if item.is_call else "Approve"}
    if item.always:
        options[ALWAYS] = f"Approve, and further ones without asking: {exact(item.always)}"
    options |= {DENY: "Deny: the step does not run", LATER: "Decide later"}
    return _form(options, "The decision")


def _form(options: dict[str, str], title: str) -> dict[str, Any]:
    """A form with a choice and a comment; nothing is chosen beforehand."""
    listed = [{"const": name, "title": text} for name, text in options.items()]
    comment = {"type": "string", "title": "Comment", "description": "Recorded in the plan", "maxLength": MAX_COMMENT}
    fields = {DECISION: {"type": "string", "title": title, "oneOf": listed}, COMMENT: comment}
    return {"type": "object", "properties": fields, "required": [DECISION]}
