"""AES-256-GCM with a key of its own for each text: HMAC-SHA-256 of the ring's key over 16 bytes of salt.

Random nonces of 96 bits under one key are safe for some four billion texts; with the salt there is no such limit in
practice. What is stored under the hash of its content takes salt and nonce from an HMAC of that content instead, so
that equal contents are stored once, and nobody without the key can test whether some content is stored.

Nothing is compressed before it is encrypted: its length would tell what a text from outside has in common with it.
"""

from __future__ import annotations

import hashlib
import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from plansurvive.features.keys.ring import Key
from plansurvive.runtime.errors import Unauthentic

SALT, NONCE = 16, 12


def encrypted(key: Key, purpose: bytes, plain: bytes, *, same: bool = False) -> bytes:
    """Salt, nonce, ciphertext and tag. `same`: equal texts give equal results. `purpose` separates uses of a key."""
    head = _digest(key, b"salt", purpose, plain)[: SALT + NONCE] if same else os.urandom(SALT + NONCE)
    return head + AESGCM(_digest(key, b"key", purpose, head[:SALT])).encrypt(head[SALT:], plain, _bound(key, purpose))


def decrypted(key: Key, purpose: bytes, data: bytes) -> bytes:
    """The text. Raises Unauthentic."""
    try:
        cipher = AESGCM(_digest(key, b"key", purpose, data[:SALT]))
        return cipher.decrypt(data[SALT : SALT + NONCE], data[SALT + NONCE :], _bound(key, purpose))
    except (InvalidTag, ValueError):  # ValueError: it is too short to have a nonce
        raise Unauthentic(
            f"encrypted data of the key {key.id} was changed, cut off, or not made with that key"
        ) from None


def _bound(key: Key, purpose: bytes) -> bytes:
    return b"plans 1\0" + purpose + b"\0" + key.id.encode()


def _digest(key: Key, use: bytes, purpose: bytes, data: bytes) -> bytes:
    return hmac.digest(key.secret, b"plans 1\0" + use + b"\0" + purpose + b"\0" + data, hashlib.sha256)
