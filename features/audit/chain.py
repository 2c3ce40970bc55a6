"""The chain of an audit record: each entry holds the hash of the one before, the first one that of its workflow.

`broken` finds an entry that was changed, removed, inserted or moved. A record of which all hashes were computed again,
or whose end was cut off, is found by its seal (`features.audit.files`) or by comparison with the history (`differs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plansurvive.features.audit.entries import Act, Entry, Signed, digest_of
from plansurvive.features.signing.model import content_of, is_by
from plansurvive.plans.model import Problem
from plansurvive.plans.signature import Signature

FORM = 1
"""Version of the form of records, to which their hashes are bound."""
_DOMAIN = f"plans: audit record, {FORM}"
MAX_PROBLEMS = 20
"""Problems that are named; a record that is wrong throughout is wrong in every line."""


def origin(workflow_id: str, run_id: str) -> str:
    """What the first entry of a workflow's record is bound to. `run_id`: of the workflow's first run."""
    return digest_of([_DOMAIN, workflow_id, run_id])


def chained(acts: Iterable[Act], start: str, first: int = 1) -> list[Entry]:
    """The acts as a chain, or as the part of one that begins with entry number `first`, behind the hash `start`."""
    found, previous = list[Entry](), start
    for number, act in enumerate(acts, first):
        data = act.model_dump(mode="json", exclude_defaults=True) | {"number": number, "previous": previous}
        previous = digest_of(data)
        found.append(Entry.model_validate(data | {"hash": previous}))
    return found


def hash_of(entry: Entry) -> str:
    """The hash that an entry should have."""
    return digest_of(entry.model_dump(mode="json", exclude_defaults=True, exclude={"hash"}))


def head(entries: Sequence[Entry], start: str) -> str:
    """The hash that stands for all of a record."""
    return entries[-1].hash if entries else start


def broken(entries: Sequence[Entry], start: str) -> list[Problem]:
    """What is wrong with a chain: changed, missing, inserted and moved entries."""
    found, previous = list[Problem](), start
    for number, entry in enumerate(entries, 1):
        if hash_of(entry) != entry.hash:
            found.append(_problem("AUDIT_CHANGED", f"entry {entry.number} is not as it was written"))
        if entry.number != number or entry.previous != previous:
            found.append(_problem("AUDIT_BROKEN", f"entry {entry.number} does not follow the one before it"))
        previous, number = entry.hash, entry.number
    return found[:MAX_PROBLEMS]


def differs(stored: Sequence[Entry], history: Sequence[Entry]) -> list[Problem]:
    """Where a stored record is not what the plan's history says."""
    for kept, real in zip(stored, history, strict=False):
        if kept != real:
            return [_problem("AUDIT_DIFFERS", f"entry {real.number} differs from the plan's history")]
    if len(stored) == len(history):
        return []
    return [_problem("AUDIT_DIFFERS", f"the record has {len(stored)} entries, the plan's history gives {len(history)}")]


def forged(entries: Sequence[Entry], workflow_id: str, key: str) -> list[Problem]:
    """Entries whose signature is not by the owner of the public key (hexadecimal), of messages not refused."""
    refused = {each.entry for each in entries if each.outcome == "refused"}
    own = dict[str, str]()
    for entry in entries:  # the first keys count: a plan's people are those of the policy that it began with
        own = {**entry.keys, **own}
    found = list[Problem]()
    for entry in entries:
        signed = entry.signed
        if signed is None or entry.number in refused or (signed.by and not own):
            continue  # a worker that knew no keys of people took what they signed for unsigned
        whose = f"{signed.by}'s key" if signed.by else "this state directory's key"
        if not _is_good(entry, signed, workflow_id, own.get(signed.by, "") if signed.by else key):
            found.append(_problem("AUDIT_SIGNATURE", f"entry {entry.number}: the signature is not by {whose}"))
    return found[:MAX_PROBLEMS]


def _is_good(entry: Entry, signed: Signed, workflow_id: str, key: str) -> bool:
    workflow = signed.workflow or workflow_id
    signature = Signature(id=signed.id, time=signed.time, value=signed.value)
    nonces = [signed.nonce, signed.previous] if signed.previous else [signed.nonce]
    contents = (content_of(signed.kind, workflow, each, entry.message, signed.id, signed.time) for each in nonces)
    return any(is_by(key, signature, content) for content in contents)


def _problem(code: str, message: str) -> Problem:
    return Problem(code=code, message=message)
