"""Secrets that plans name, filled in by the worker that makes the call: docs/secrets.md."""

REACHES_OUT = True
COMMANDS = {"secrets": ("commands:app", "List the secrets that plans may name, and check them.")}
