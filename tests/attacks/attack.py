"""What an attack is: a table of data, judged from outside.

An `Attack` belongs to a class of attacks (`kind`) and has several spellings; each runs at every sandbox level, as root
and as an ordinary user. What it should come to is written beside it and compared with what was measured:

held        nothing of it reached the outside
succeeds    it did: at level 0 this is the control, which shows that the attack and its judge work
named       it did, at level 1, and docs/security.md names it as a gap of that level
impossible  it cannot succeed even without a sandbox, as this user on this kernel: the other user is the control
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tests.attacks.ground import Ground

Level = Literal["off", "landlock", "bwrap"]
"""A value of PLANS_SANDBOX, for levels 0, 1 and 2."""
User = Literal["root", "ordinary"]
Outcome = Literal["held", "succeeds", "named", "impossible"]
LEVELS: tuple[Level, ...] = ("off", "landlock", "bwrap")
USERS: tuple[User, ...] = ("root", "ordinary")
Cell: TypeAlias = tuple[Level, User]
Expected: TypeAlias = Mapping[Cell, Outcome]
Judge: TypeAlias = Callable[[Ground], AbstractContextManager[Callable[[], bool]]]
"""Looks from outside while it is open; what it gives says whether the attack reached the outside. It then restores."""

NAMED: Expected = {("landlock", "root"): "named", ("landlock", "ordinary"): "named"}
NAMED_FOR_USER: Expected = {("landlock", "ordinary"): "named"}
ONLY_ROOT: Expected = {("off", "ordinary"): "impossible"}
HELD: Expected = {("landlock", "root"): "held", ("landlock", "ordinary"): "held"}
HELD_FOR_ROOT: Expected = {("landlock", "root"): "held"}
"""Commands of a root worker run as a user of their own, which has no rights on what is root's."""
NOWHERE: Expected = {("off", "root"): "held", ("off", "ordinary"): "held"}
"""Held by the launcher or the tool at every level; the control is a run without them."""


@dataclass(frozen=True)
class Spelling:
    """One way to write an attack. `@NAME@` in its texts stands for a token of the ground."""

    name: str
    command: str = ""
    """The command of the step; with `python` it is left out."""
    python: str = ""
    """A program that the command runs, from a file in the workspace."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The step's `env`."""
    cwd: str = "."
    """The step's `cwd`."""
    network: bool = False
    """The step's `network`."""
    worker: Mapping[str, str] = field(default_factory=dict)
    """Further environment of the worker."""
    prepare: Callable[[Ground], None] | None = None
    """What is there before the command runs."""
    judge: Judge | None = None
    """Instead of the attack's."""
    expected: Expected = field(default_factory=dict)
    """What differs from the attack's."""
    control: str = ""
    """Run without launcher and sandbox, this does what the attack is after: for what is held at level 0 as well."""


@dataclass(frozen=True)
class Attack:
    """Spellings of one attack, which share a judge and, but for exceptions, what they should come to."""

    kind: str
    """What it is after: a row of the table in docs/security.md."""
    judge: Judge
    spellings: tuple[Spelling, ...]
    expected: Expected = field(default_factory=dict)
    alone: bool = False
    """Whether it changes what all processes of the host share, so that two may not run at the same time."""

    def outcome(self, spelling: Spelling, cell: Cell) -> Outcome:
        """What a spelling should come to at a level, as a user."""
        usual: Outcome = "succeeds" if cell[0] == "off" else "held"
        return spelling.expected.get(cell, self.expected.get(cell, usual))


@dataclass(frozen=True, eq=False)
class Case:
    """One cell: a spelling at a level as a user."""

    attack: Attack
    spelling: Spelling
    level: Level
    user: User

    @property
    def outcome(self) -> Outcome:
        return self.attack.outcome(self.spelling, (self.level, self.user))

    @property
    def escapes(self) -> bool:
        """Whether it should reach the outside."""
        return self.outcome in ("succeeds", "named")

    @property
    def id(self) -> str:
        words = (self.attack.kind, self.spelling.name, self.level, self.user)
        return "-".join(word.replace(" ", "_").replace("/", "|") for word in words)
