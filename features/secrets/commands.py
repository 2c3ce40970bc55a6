"""`plan secrets`: the secrets of secrets.toml. Their values are never printed; `check` reads them as a worker would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from plansurvive.client.cli.terminal import environment, output
from plansurvive.client.cli.terminal.options import AsJson, group
from plansurvive.client.local_tools import known_tools
from plansurvive.features.secrets.secrets_file import Entry, file_of, none_in, read_entries, unknown_tools
from plansurvive.features.secrets.store import SecretStore
from plansurvive.plans.definition.foreign_names import no_tool
from plansurvive.plans.text.safe_text import line

FAILED = 1
"""Exit code if a secret cannot be read."""

app = group("List the secrets that plans may name, and check them.")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the secrets of secrets.toml: where they come from, which tools may use them, and where they may be sent."""
    _show(read_entries(environment.settings()), {}, as_json)


@app.command("check")
def check(as_json: AsJson = False) -> None:
    """Read each secret once, as a worker on this machine would. Exit code 1 if one cannot be read."""
    settings = environment.settings()
    entries = read_entries(settings)
    troubles = SecretStore(entries, file_of(settings).parent).read_all()
    known = known_tools(settings)
    for name, tools in unknown_tools(entries, list(known)).items():
        text = "; ".join(no_tool(tool, known) for tool in tools)
        troubles[name] = f"{troubles[name]}; {text}" if name in troubles else text
    _show(entries, {name: troubles.get(name, "") for name in entries}, as_json)
    if troubles:
        raise typer.Exit(FAILED)


def _show(entries: Mapping[str, Entry], checked: Mapping[str, str], as_json: bool) -> None:
    """`checked`: what is wrong with each, or nothing; empty if they were not checked."""
    if as_json:
        output.show_json([_row(name, entry, checked) for name, entry in entries.items()])
        return
    if not entries:
        output.show(line(none_in(file_of(environment.settings()))))
    for name, entry in entries.items():
        hosts = f", to {line(', '.join(entry.hosts))}" if entry.hosts else ""
        models = ", models may name it" if entry.models else ""
        output.show(f"{name}  from {line(entry.place)}, for {line(', '.join(entry.tools))}{hosts}{models}")
        if name in checked:
            output.show(f"  {line(checked[name]) or 'can be read'}")


def _row(name: str, entry: Entry, checked: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name, "from": entry.place, "tools": entry.tools, "hosts": entry.hosts, "models": entry.models,
    }  # fmt: skip
    return row | ({"problem": checked[name] or None} if name in checked else {})
