"""The key of a state directory (Ed25519): what its owner sends, and the records of this machine, are signed with it.

The private key is a file of mode 0600: whoever can read it can speak as the owner. Clients and workers of the directory
share it.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from plansurvive.runtime.private_files import secret
from plansurvive.runtime.settings import Settings

KEY = "decisions.key"
"""File in the state directory that holds the private key, hexadecimal."""


def private_key(settings: Settings) -> Ed25519PrivateKey:
    """The key of the state directory, made on first use. Raises SettingError if others can read or change it."""
    settings.make_state_dir()
    made = secret(settings.state_dir / KEY, _new_key, "PLANS_DECISIONS", "its signatures")
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(made))


def public_key(settings: Settings) -> str:
    """The public key, hexadecimal; empty unless decisions must be signed. Raises as `private_key`."""
    if settings.decisions != "signed":
        return ""
    return private_key(settings).public_key().public_bytes_raw().hex()


def _new_key() -> str:
    return Ed25519PrivateKey.generate().private_bytes_raw().hex()
