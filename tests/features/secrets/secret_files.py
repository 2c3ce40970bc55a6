"""Secrets for tests: a secrets.toml, and the places that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write_secrets(directory: Path, **entries: dict[str, Any]) -> Path:
    """A secrets.toml in the directory. `source` is where a secret comes from."""
    rows = []
    for name, entry in entries.items():
        rows.append(f"[secrets.{name}]\nfrom = {_toml(entry.pop('source'))}")
        rows += [f"{key} = {_toml(value)}" for key, value in entry.items()]
    path = directory / "secrets.toml"
    path.write_text("\n".join(rows))
    path.chmod(0o600)
    return path


def private(path: Path, text: str) -> Path:
    """A file that holds a secret."""
    path.write_text(text)
    path.chmod(0o600)
    return path


def _toml(value: str | bool | list[str]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return "'" + value + "'"
