"""Whether the record itself bears out what it says of the policy: who consented to what, under which rule.

Every decision of the policy names the hash of the file that answered, and the record has that file's text once. So the
rules can be read in it; of a call that a rule asked about, the approval is an entry before it. Nothing else is needed.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from typing import Any

from plansurvive.features.audit.entries import Entry, Want
from plansurvive.plans.model import Problem
from plansurvive.plans.model.identities import identity
from plansurvive.plans.text.spans import SECONDS_OF

MAX_PROBLEMS = 20
SLACK = 5.0
"""Seconds by which the time of an event may differ from that at which the plan or a worker has looked at it."""
ENDS = ("step ended", "judged")
"""The entries that say how a call ended."""
_SPAN = re.compile(r"([0-9]+)([smhd])")
_NONE: Mapping[str, Any] = {}


def unproven(entries: Sequence[Entry], policies: Mapping[str, str]) -> list[Problem]:
    """What the record says of the policy and does not prove. `policies`: the texts that it has, by hash."""
    found, read = list[Problem](), dict[str, Mapping[str, Any]]()
    named = dict.fromkeys(each.policy for each in entries if each.policy)
    for hash_ in [*named, *(each for each in policies if each not in named)]:
        text = policies.get(hash_)
        if text is None:
            found.append(_problem("AUDIT_POLICY", f"the text of policy {hash_[:12]} is not in the record"))
        elif hashlib.sha256(text.encode()).hexdigest() != hash_:
            found.append(_problem("AUDIT_POLICY", f"the text of policy {hash_[:12]} is not as it was when it answered"))
        else:
            read[hash_] = _read(text)
    refused = {each.entry for each in entries if each.outcome == "refused"}
    is_resumed = bool(entries) and entries[0].action == "started" and bool(entries[0].linked)
    calls = dict[str, Entry]()
    for number, entry in enumerate(entries):
        if entry.action == "step started":
            calls[entry.step_id] = entry
        # A step that is a plan or an agent has one entry, by which it was judged.
        call = entry if entry.action == "judged" else calls.get(entry.step_id, entry)
        if call.must and entry.outcome == "completed" and entry.action in ENDS and entry.decide != "ask":
            text = f"the plan says who must approve step '{entry.step_id}', which was made without asking"
            found.append(_problem("AUDIT_CONSENT", f"entry {entry.number}: {text}"))
        if not entry.decide:
            continue
        policy = read.get(entry.policy)
        if policy is not None and (why := _unlike(entry, policy)):
            found.append(_problem("AUDIT_POLICY", f"entry {entry.number}: {why}"))
        if entry.decide != "ask" or entry.outcome != "completed":
            continue
        before = _approved([each for each in entries[:number] if each.step_id == entry.step_id], refused)
        if not before and not (is_resumed and call.consents):  # a resumed plan keeps an approval that was not used
            what = "a rule asks" if entry.rules else "the plan asks"
            text = f"{what} about step '{entry.step_id}', which was made, and the record has no approval"
            found.append(_problem("AUDIT_CONSENT", f"entry {entry.number}: {text}"))
        elif before and policy is not None and (why := _too_few(entry, call, policy, before)):
            found.append(_problem("AUDIT_CONSENT", f"entry {entry.number}: {why}"))
    return found[:MAX_PROBLEMS]


def _approved(entries: Sequence[Entry], refused: Set[int | None]) -> list[Entry]:
    """The approvals among entries about a step that were not withdrawn. `refused`: numbers of entries."""
    found, before = list[Entry](), list[Entry]()
    for each in entries:
        if each.action in ("approve", "override") and each.number not in refused:
            found.append(each)
        elif each.action == "withdraw":
            before, found = found, [one for one in found if identity(one.by) != identity(each.by)]
        elif each.action == "withdraw ended" and each.outcome == "refused":
            found = before
    last = found[-1].digest if found else ""  # what was approved of another call counts for nothing
    return [each for each in found if not last or each.digest in ("", last)]


def _unlike(entry: Entry, policy: Mapping[str, Any]) -> str:
    """How an entry differs from the rules that it names; empty if it does not."""
    rules = _rules(policy)
    for name in entry.rules:
        rule = rules.get(name)
        if rule is None:
            return f"policy {entry.policy[:12]} has no rule '{name}'"
        decides, is_settled = rule.get("decide"), name in entry.judges
        if entry.decide == "ask" or decides == entry.decide:
            continue  # an ask may be one of what is not known, whatever the rule decides
        if not (entry.decide == "allow" and decides == "ask" and rule.get("judge") and is_settled):
            return f"rule '{name}' decides {decides}, and the entry says {entry.decide}"
    return ""


def _too_few(entry: Entry, call: Entry, policy: Mapping[str, Any], approved: Sequence[Entry]) -> str:
    """Why those who approved a call are not who a rule, or the plan itself, asks for; empty if they are."""
    alone = {_person(policy, each.by) for each in approved if each.action == "override"}
    terms = list[tuple[str, Want]]()
    for name in entry.rules:
        rule = _rules(policy).get(name, _NONE)
        if rule.get("decide") == "ask" and not alone & _members(policy, rule.get("override")):
            terms.append((f"rule '{name}'", _want(rule)))
    terms += [("the plan", each) for each in call.wants]
    for title, term in terms:
        needed, counted = _counted(term, call, policy, approved)
        if len(counted) < needed:
            return f"{title} needs {needed} to approve it, and the record has {len(counted)} of them"
    return ""


def _counted(term: Want, call: Entry, policy: Mapping[str, Any], approved: Sequence[Entry]) -> tuple[int, set[str]]:
    """How many people must approve, and who of them has."""
    counted, needed = {_person(policy, each.by) for each in _in_time(term, call, approved)}, term.count
    if term.by:
        allowed = _members(policy, term.by)
        allowed |= {each.get("to") for each in policy.get("delegation", []) if each.get("from") in allowed}
        counted &= allowed
    if term.not_author:
        known = {each for each in call.authors if not each.startswith("?")}
        counted -= {_person(policy, each) for each in known}
        needed += len({identity(each) for each in call.authors} - {identity(each) for each in known})
    return needed, counted


def _in_time(term: Want, call: Entry, approved: Sequence[Entry]) -> list[Entry]:
    """Those that had not expired when the call was sent; it has begun later."""
    if term.expires is None:
        return list(approved)
    return [each for each in approved if (call.time - each.time).total_seconds() <= term.expires + SLACK]


def _want(rule: Mapping[str, Any]) -> Want:
    """What a rule of the text asks for. Its text was read by a worker, so it is whole."""
    by, span = rule.get("by") or [], _SPAN.fullmatch(str(rule.get("expires", "")))
    return Want(
        by=[by] if isinstance(by, str) else by, count=rule.get("count", 1), not_author=rule.get("not_author", False),
        expires=int(span[1]) * SECONDS_OF[span[2]] if span else None,
    )  # fmt: skip


def _read(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return _NONE


def _rules(policy: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(each.get("name")): each for each in policy.get("rule", []) if isinstance(each, dict)}


def _members(policy: Mapping[str, Any], names: Any) -> set[str]:
    groups, found = policy.get("groups", {}), set[str]()
    for name in [names] if isinstance(names, str) else names or []:
        found.update(groups.get(name.removeprefix("group:"), []) if name.startswith("group:") else [name])
    return found


def _person(policy: Mapping[str, Any], name: str) -> str:
    """The person whose name or login this is; the name itself if it is nobody's."""
    for person, each in policy.get("people", {}).items():
        logins = each.get("logins", []) if isinstance(each, dict) else []
        if name.casefold() in (person.casefold(), *(login.casefold() for login in logins)):
            return str(person)
    return name


def _problem(code: str, message: str) -> Problem:
    return Problem(code=code, message=message)
