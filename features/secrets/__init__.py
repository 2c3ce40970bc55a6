"""Secrets that plans name, filled in by the worker that makes the call: docs/secrets.md."""

REACHES_OUT = True
READS = {"secrets.toml": ("PLANS_SECRETS", "secrets_file:read_entries")}
COMMANDS = {"secrets": ("commands:app", "List the secrets that plans may name, and check them.")}
