"""Encryption with keys of your own (PLANS_KEYS): docs/encryption.md.

Keys are named by ids that contain their fingerprint. Payloads are encrypted on their way to the server, values and
files where they are stored; processes notice a changed key ring without a restart.
"""

REACHES_OUT = False
COMMANDS = {"keys": ("commands:app", "Add a key that encrypts, list the keys, and check them.")}
