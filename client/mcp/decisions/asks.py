"""What a person is asked as an MCP elicitation: the whole call, exactly and safely written, and the form of the answer.

Pure. A request's key names exactly what is decided on (plan, step, kind, digest, since when), so that a response to it
is about nothing else; after a reply that did not settle it, the next request has the next number. What is too long to
be read in a form is not asked: it is decided elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from client.mcp.decisions.forms import AnswerForm, answer_form
from client.pending import Pending
from plans.views.call_text import CALLS, call_rows, value_rows
from plans.views.pending import QUESTION
from plans.views.safe_text import exact
from plans.waiting.questions import as_typed, has_default, on_timeout

MAX_CHARACTERS = 20_000
"""Length of the text of a request. Nothing in it is cut: what is longer is decided elsewhere."""
MAX_COMMENT = 2_000
DECISION, COMMENT = "decision", "comment"
"""Fields of the form of an approval or a review."""
REVIEW = "review"
"""Kind of the request to begin or reject a draft; the others are kinds of pending decisions."""
APPROVE, ALWAYS, DENY, BEGIN, REJECT, LATER = "approve", "always", "deny", "begin", "reject", "later"
KEY = re.compile(r"(?P<base>[a-z]{1,20}-[0-9a-f]{40})-(?P<number>[0-9]{1,3})")
_TITLES = {"recovery": "Approve this recovery?", "budget": "Exceed the budget?"}


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
    since = item.since.isoformat() if item.since else ""
    bound = (item.plan_id, item.step_id, item.kind, item.digest or f"version {item.version}", since)
    if item.kind == QUESTION:
        form = answer_form(item.args)
        return Ask(
            _base("question", *bound), item.plan_id, item.step_id, item.kind, _question(item, form), form.schema,
            item.digest, item.version, form,
        )  # fmt: skip
    return Ask(
        _base("approval", *bound), item.plan_id, item.step_id, item.kind, _call(item), _choices(item),
        item.digest, item.version,
    )  # fmt: skip


def ask_to_begin(plan_id: str, title: str, version: int, text: str) -> Ask:
    """The request to begin a draft that is in review. `text`: the whole plan, as `plan show` prints it."""
    rows = [f"Plan {exact(plan_id)} is in review and starts nothing until somebody begins it.", ""]
    rows += [*value_rows("title", title), *exact(text).split("\n"), ""]
    rows += [f"This is version {version}; begun, it runs as shown, and asks again where it must."]
    options = {BEGIN: "Begin this plan", REJECT: "Reject it: the plan is cancelled", LATER: "Decide later"}
    base = _base(REVIEW, plan_id, "", REVIEW, f"version {version}", "")
    return Ask(base, plan_id, "", REVIEW, "\n".join(rows), _form(options, "What to do with the draft"), version=version)


def _base(kind: str, *parts: str) -> str:
    return f"{kind}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:40]}"


def _call(item: Pending) -> str:
    title = f"Approve {exact(item.tool)}?" if item.kind in CALLS else _TITLES.get(item.kind, f"Approve {item.kind}?")
    rows = [title, "", *value_rows("plan", item.plan_id), *value_rows("step", item.step_id), *call_rows(item)]
    rows += value_rows("network", True) if item.network else []
    rows += [f"! {item.more} more items of this step ask as well; this is about this one alone"] if item.more else []
    rows += ["! it asked for another call before: this is the call as it is now"] if item.changed else []
    rows += value_rows("digest", item.digest) if item.digest else []
    return "\n".join(rows)


def _choices(item: Pending) -> dict[str, Any]:
    proposed = "Approve" if item.kind not in CALLS else "Approve this call"
    options = {APPROVE: proposed}
    if item.always and item.kind == "approval":
        options[ALWAYS] = f"Approve, and further ones without asking: {exact(item.always)}"
    options |= {DENY: "Deny: the step does not run", LATER: "Decide later"}
    return _form(options, "The decision")


def _form(options: dict[str, str], title: str) -> dict[str, Any]:
    """A form with a choice and a comment; nothing is chosen beforehand."""
    listed = [{"const": name, "title": text} for name, text in options.items()]
    comment = {"type": "string", "title": "Comment", "description": "Recorded in the plan", "maxLength": MAX_COMMENT}
    fields = {DECISION: {"type": "string", "title": title, "oneOf": listed}, COMMENT: comment}
    return {"type": "object", "properties": fields, "required": [DECISION]}


def _question(item: Pending, form: AnswerForm) -> str:
    args = item.args
    rows = [exact(str(args.get("question", ""))), "", *value_rows("plan", item.plan_id)]
    rows += value_rows("step", item.step_id)
    rows += [f"! {warning}" for warning in item.unusual]
    rows += value_rows("item", item.item) if item.item else []
    rows += value_rows("for", str(args["to"])) if args.get("to") else []
    rows += value_rows("choices", args["choices"]) if args.get("choices") is not None else []
    rows += value_rows("answer", args.get("schema")) if form.is_json else []
    rows += value_rows("default", as_typed(args.get("default"))) if has_default(args) else []
    rows += [f"! {_late(args)}"] if args.get("timeout") is not None else []
    return "\n".join(rows)


def _late(args: Mapping[str, Any]) -> str:
    """What happens when nobody answers in time."""
    ways = {"default": "the default counts", "skip": "the step is skipped"}
    return f"without an answer within {exact(str(args['timeout']))} s, {ways.get(on_timeout(args), 'the step fails')}"
