"""When two names mean the same person, host or domain: every comparison of identities goes through `identity`. And what
the ids of agents begin with, which tell them from plans.
"""

from __future__ import annotations

import unicodedata

AGENT_PREFIX = "agent-"
"""Beginning of the ids of agents, which are also their workflow ids."""


def identity(name: str) -> str:
    """What a name is compared by: an ASCII name in any case, another one as written, in normal form C.

    Case folding beyond ASCII makes one name of several (`boſſ` and `boss`, `straße` and `strasse`), which whoever gives
    out logins takes for different people.
    """
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name)
