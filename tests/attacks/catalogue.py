"""All attacks, and all cells of the table."""

from __future__ import annotations

from tests.attacks.attack import LEVELS, USERS, Attack, Case
from tests.attacks.channel_attacks import CHANNEL_ATTACKS
from tests.attacks.environment_attacks import ENVIRONMENT_ATTACKS
from tests.attacks.file_attacks import FILE_ATTACKS
from tests.attacks.host_attacks import HOST_ATTACKS
from tests.attacks.socket_attacks import SOCKET_ATTACKS

ATTACKS: tuple[Attack, ...] = (*ENVIRONMENT_ATTACKS, *FILE_ATTACKS, *HOST_ATTACKS, *CHANNEL_ATTACKS, *SOCKET_ATTACKS)
CASES: tuple[Case, ...] = tuple(
    Case(attack, spelling, level, user)
    for attack in ATTACKS
    for spelling in attack.spellings
    for level in LEVELS
    for user in USERS
)
