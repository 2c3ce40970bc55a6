"""Reads `secrets.toml`: the secrets that plans may name, where each comes from, and which tools may use it.

    [secrets.TRACKER_TOKEN]
    from = "file:tracker.token"        # or env:NAME, or command:PROGRAM ARGUMENTS
    tools = ["http_request", "run_command"]
    hosts = ["tracker.example.org"]
    models = false

There is one file, the operator's, as with mcp.toml: in the state directory, or where PLANS_SECRETS says. It holds no
secrets itself; errors name the file and the key, never a value.

Rejected: any tool may have any secret once a person approves; people approve what looks right.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from plansurvive.features.secrets.model import SecretUse
from plansurvive.features.secrets.naming import NAME
from plansurvive.features.secrets.permissions import ANY_HOST, with_allowed
from plansurvive.features.secrets.settings import SecretSettings
from plansurvive.plans.definition.near_names import Foreign
from plansurvive.plans.model import ToolName, ToolSpec, Value
from plansurvive.plans.model.receivers import Receiver
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.toml_file import read_text
from plansurvive.runtime.toml_shape import checked, shaped

FILE = "secrets.toml"
"""Name of the file in the state directory, unless PLANS_SECRETS names another."""
SETTING = "PLANS_SECRETS"
MAX_SECRETS = 50
"""Every text that leaves the worker is searched for each of them."""
COMMAND, FILE_OF, VARIABLE = "command:", "file:", "env:"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_KEPT = {
    **dict.fromkeys(("write_file", "edit_file"), "it keeps what it writes for `plan undo`, and shows it in diffs"),
    **dict.fromkeys(
        ("ask", "agent", "coding_agent", "plan", "wait_for", "sleep"), "its arguments are kept with the plan"
    ),
    "run_python": "its only text is code, which is kept with the plan; use run_command and its `env`",
}
"""Tools that cannot have secrets, and why."""
_ELSEWHERE = 'the file says where a secret is, not what it is: `from = "env:NAME"` or "file:PATH"'
_FOREIGN = Foreign({}, dict.fromkeys(("value", "secret", "token", "password"), _ELSEWHERE))
"""Keys in the files of other programs."""


_TABLES = {"secrets": ("[secrets.NAME]", 'from = "env:VARIABLE"` and `tools = ["TOOL"]')}
"""The file says where a secret is; a secret that was written into it belongs there instead."""


def none_in(path: Path) -> str:
    """The sentence about a file without secrets."""
    what = "has no secrets" if path.exists() else "does not exist"
    return f"no secrets: {path} {what}; write [secrets.NAME] with `from`, `tools` and `hosts` there, for each secret"


Name = Annotated[str, StringConstraints(pattern=f"^{NAME}$")]


class Entry(Value):
    """A secret of secrets.toml."""

    source: str = Field(alias="from", min_length=5, max_length=10_000)
    tools: list[ToolName] = Field(min_length=1, max_length=200)
    hosts: list[str] = Field(default_factory=list, max_length=200)
    models: bool = False

    @property
    def kind(self) -> str:
        """`env:`, `file:` or `command:`."""
        return self.source.partition(":")[0] + ":"

    @property
    def place(self) -> str:
        """Where it comes from, without the arguments of a command."""
        return f"{COMMAND}{self.words[0]}" if self.kind == COMMAND else self.source

    @property
    def words(self) -> list[str]:
        """The words of a command."""
        return shlex.split(self.source.removeprefix(COMMAND))

    def use(self) -> SecretUse:
        """What a tool is told."""
        return SecretUse(hosts=self.hosts, models=self.models)

    @property
    def problems(self) -> list[str]:
        """What is wrong with the entry beyond its form, each as `KEY: what`."""
        return list(self._problems())

    def _problems(self) -> Iterator[str]:
        if problem := self._of_source():
            yield f"from: {problem}"
        for name in self.tools:
            if name in _KEPT:
                yield f"tools: {name} cannot have secrets: {_KEPT[name]}"
        if "http_request" in self.tools and not self.hosts:
            yield 'hosts: say where http_request may send it, as in ["api.example.org"]; ["*"] is everywhere'
        for host in self.hosts:
            try:
                _ = host == ANY_HOST or Receiver.of(host)
            except ValueError as error:
                yield f"hosts: {error}"

    def _of_source(self) -> str:
        name = self.source.partition(":")[2]
        if self.kind == VARIABLE:
            return "" if _VARIABLE.fullmatch(name) else "write env:NAME, with the name of a variable of the worker"
        if self.kind == FILE_OF:
            return "" if "\0" not in name and name.strip() else "write file:PATH"
        try:
            is_command = self.kind == COMMAND and bool(self.words)
        except ValueError:  # its message may quote the text
            return "the quotes of the command do not match"
        return "" if is_command else "write env:NAME, file:PATH or command:PROGRAM ARGUMENTS"


class _File(Value):
    """The content of a secrets.toml."""

    secrets: dict[Name, Entry] = Field(default_factory=dict, max_length=MAX_SECRETS)


def file_of(settings: Settings) -> Path:
    """Where the names are read from."""
    return settings.of(SecretSettings).secrets or settings.state_dir / FILE


def read_entries(settings: Settings) -> Mapping[str, Entry]:
    """The secrets by name; none if there is no file and none is named. Raises SettingError."""
    path, is_named = file_of(settings), settings.of(SecretSettings).secrets is not None
    found = read_text(path, SETTING, is_named=is_named, may_do="give secrets away")
    return {} if found is None else _checked(path, found)


def allowed(spec: ToolSpec, entries: Mapping[str, Entry]) -> ToolSpec:
    """The spec of a tool with the secrets that it may use."""
    found = {} if spec.durable else {name: each.use() for name, each in entries.items() if spec.name in each.tools}
    return with_allowed(spec, found)


def unknown_tools(entries: Mapping[str, Entry], known: Sequence[str]) -> Mapping[str, list[str]]:
    """By secret, the tools that it names and that there are not."""
    found = {name: [tool for tool in each.tools if tool not in known] for name, each in entries.items()}
    return {name: tools for name, tools in found.items() if tools}


def _checked(path: Path, text: str) -> Mapping[str, Entry]:
    found = shaped(_File, text, path, SETTING, quotes=False, examples=_TABLES, foreign=_FOREIGN).secrets
    return checked(found, "secrets", text, path, SETTING)
