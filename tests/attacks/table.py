"""The table of docs/security.md: what attacks come to, by level and user, between two markers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from scripts.generated import between
from tests.attacks.attack import LEVELS, USERS, Attack, Case, Level, User
from tests.attacks.catalogue import ATTACKS, CASES

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "security.md"
BEGIN, END = "<!-- attacks: begin (python -m scripts.attack_table writes this) -->", "<!-- attacks: end -->"
HEADS = {"off": "level 0", "landlock": "level 1", "bwrap": "level 2"}
PEOPLE = {"root": "root", "ordinary": "user"}


def summary(cases: Iterable[Case]) -> str:
    """How many cells come to what."""
    counted = Counter(f"{case.outcome} at {HEADS[case.level]}" for case in cases)
    return ", ".join(f"{count} {what}" for what, count in sorted(counted.items()))


def cell(attack: Attack, level: Level, user: User) -> str:
    """What the spellings of an attack come to: `held`, or how many escape or are impossible."""
    outcomes = Counter(attack.outcome(spelling, (level, user)) for spelling in attack.spellings)
    total = len(attack.spellings)
    words = {"succeeds": "succeeds", "named": "open", "impossible": "not possible", "held": "held"}
    parts = [
        words[outcome] if outcomes[outcome] == total else f"{words[outcome]} {outcomes[outcome]}"
        for outcome in ("succeeds", "named", "impossible", "held")
        if outcomes[outcome]
    ]
    return ", ".join(parts)


def table() -> str:
    """The text between the markers."""
    columns = [(level, user) for level in LEVELS for user in USERS]
    heads = [f"{HEADS[level]}, {PEOPLE[user]}" for level, user in columns]
    rows = [
        f"| attack | spellings | {' | '.join(heads)} |",
        f"| --- | --- |{' --- |' * len(columns)}",
    ]
    for attack in ATTACKS:
        cells = [cell(attack, level, user) for level, user in columns]
        rows.append(f"| {attack.kind} | {len(attack.spellings)} | {' | '.join(cells)} |")
    spellings = sum(len(attack.spellings) for attack in ATTACKS)
    escapes = {level: sum(case.escapes for case in CASES if case.level == level) for level in LEVELS}
    told = (
        f"{len(ATTACKS)} attacks in {spellings} spellings, {len(CASES)} cells. "
        f"Escapes: {escapes['off']} at level 0, {escapes['landlock']} at level 1, {escapes['bwrap']} at level 2."
    )
    return "\n".join([*rows, "", told, "", f"Open at level 1: {'; '.join(gaps())}."])


def gaps() -> list[str]:
    """What is open at level 1: each attack with its spellings, unless they are open without exception."""
    found = []
    for attack in ATTACKS:
        named = {
            user: [each for each in attack.spellings if attack.outcome(each, ("landlock", user)) == "named"]
            for user in USERS
        }
        every = [each.name for each in attack.spellings if any(each in names for names in named.values())]
        for_user = "" if named["root"] else ", if the worker is not root"
        if every:
            spelt = "" if len(every) == len(attack.spellings) else f" ({', '.join(every)}{for_user})"
            found.append(f"{attack.kind}{spelt}")
    return found


def written(document: str) -> str:
    """The document with the table between its markers. Raises ValueError if it has no markers."""
    return between(document, BEGIN, END, table())
