"""Whether the record itself bears out what it says of the policy: who consented to what, under which rule.

Every decision of the policy names the hash of the file that answered, and the record has that file's text once. So the
rules can be read in it; of a call that a rule asked about, the approval is an entry before it. Nothing else is needed.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence, Set
from typing import Any

from plansurvive.features.audit.entries import Entry
from plansurvive.plans.model import Problem
from plansurvive.plans.model.identities import identity

MAX_PROBLEMS = 20
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
    consents = dict[str, list[str]]()
    for number, entry in enumerate(entries):
        if entry.action == "step started":
            consents[entry.step_id] = entry.consents
        if not entry.decide:
            continue
        policy = read.get(entry.policy)
        if policy is not None and (why := _unlike(entry, policy)):
            found.append(_problem("AUDIT_POLICY", f"entry {entry.number}: {why}"))
        if entry.decide != "ask" or entry.outcome != "completed":
            continue
        said = entry.consents or consents.get(entry.step_id, [])
        before = _approved([each for each in entries[:number] if each.step_id == entry.step_id], refused)
        if not before and not (is_resumed and said):  # a resumed plan keeps an approval that was not used
            text = f"a rule asks about step '{entry.step_id}', which was made, and the record has no approval"
            found.append(_problem("AUDIT_CONSENT", f"entry {entry.number}: {text}"))
        elif before and policy is not None and (why := _too_few(entry, policy, before)):
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
    return found


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


def _too_few(entry: Entry, policy: Mapping[str, Any], approved: Sequence[Entry]) -> str:
    """Why those who approved a call are not who a rule asks for; empty if they are."""
    people = {_person(policy, each.by) for each in approved}
    alone = {_person(policy, each.by) for each in approved if each.action == "override"}
    for name in entry.rules:
        rule = _rules(policy).get(name, _NONE)
        if rule.get("decide") != "ask" or alone & _members(policy, rule.get("override")):
            continue
        allowed = _members(policy, rule.get("by"))
        allowed |= {each.get("to") for each in policy.get("delegation", []) if each.get("from") in allowed}
        counted = people & allowed if rule.get("by") else people
        needed = rule.get("count", 1)
        if len(counted) < needed:
            return f"rule '{name}' needs {needed} to approve it, and the record has {len(counted)} of them"
    return ""


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
