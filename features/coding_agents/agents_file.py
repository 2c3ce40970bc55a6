"""Reads `agents.toml`: the coding agents that plans may use, by name.

    [agents.claude]
    command = ["npx", "@zed-industries/claude-code-acp"]
    env = { ANTHROPIC_API_KEY = "env:ANTHROPIC_API_KEY" }
    network = ["api.anthropic.com:443"]

There is one file, the operator's: in the state directory, or where PLANS_AGENTS says. A file of the same name in a
workspace or a repository is never read, as what it names would be started unasked. Values of variables are never in it,
only where they are; errors name the file and the key, never a value.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from plansurvive.features.coding_agents.model import HOLD
from plansurvive.features.coding_agents.settings import CodingAgentSettings
from plansurvive.plans.definition.near_names import Foreign, Hints
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import Value
from plansurvive.plans.model.receivers import Receiver
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.toml_file import read_text
from plansurvive.runtime.toml_shape import checked, shaped

FILE = "agents.toml"
"""Name of the file in the state directory, unless PLANS_AGENTS names another."""
SETTING = "PLANS_AGENTS"
MAX_AGENTS = 50
SESSION = "{session}"
"""What stands for a session's id in `open`."""
_FOREIGN = Foreign(
    {},
    {
        "args": "`command` is a list: the program, then its arguments",
        "model": "a model is chosen as the program has it: an argument in `command`, or a variable in `env`",
        "type": "leave it out: every agent speaks the Agent Client Protocol",
    },
)
"""Keys in the files of other programs."""

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=100_000)]


class CodingAgent(Value):
    """One coding agent: a program that speaks the Agent Client Protocol on standard input and output."""

    command: list[Text] = Field(min_length=1, max_length=200, description="The program and its arguments.")
    env: dict[Variable, Reference] = Field(
        default_factory=dict, max_length=100, description="Variables of the program, each as `env:NAME`."
    )
    sandbox: Literal["auto", "off"] = Field(default="auto", description="As for commands, or none.")
    network: list[Text] = Field(
        default_factory=list, max_length=100, description='Hosts that it may reach (`api.example.org:443`), or `["*"]`.'
    )
    home: str = Field(default="", max_length=4_000, description="Its home directory; empty: one of its own.")
    hold: float = Field(
        default=HOLD, gt=0, le=86_400, allow_inf_nan=False, description="Seconds its process waits for a person."
    )
    approve: Literal["never", "always"] = Field(default="always", description="Whether a step of it asks first.")
    read: list[Text] = Field(default_factory=list, max_length=100, description="Further paths that it may read.")
    open: list[Text] = Field(
        default_factory=list, max_length=200, description="Opens a session in a terminal; `{session}` is its id."
    )

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, each with the key and what to do."""
        found = [
            "command: it contains a NUL character" if "\0" in "".join(self.command) else "",
            *(
                "" if value.startswith("env:") and len(value) > len("env:") else
                f"env.{name}: write where the value is, `env:NAME`, not the value itself"
                for name, value in self.env.items()
            ),
            "" if not self.open or SESSION in "".join(self.open) else
            f'open: it does not name the session; write {SESSION} where its id belongs',
            *_network_problems(self.network, self.sandbox),
            *(f"{key}: {path} is not absolute; write the whole path, or ~/..."
              for key, path in [("home", self.home), *(("read", path) for path in self.read)]
              if path and not home_path(path).is_absolute()),
        ]  # fmt: skip
        return [problem for problem in found if problem]

    def opening(self, session: str, home: str, folder: str) -> str:
        """The line for a terminal that opens a session there; empty if it is not known how."""
        command = shlex.join(each.replace(SESSION, session) for each in self.open)
        return f"cd {shlex.quote(folder)} && HOME={shlex.quote(home)} {command}" if command else ""

    @property
    def has_network(self) -> bool:
        """Whether its program has the network, all of it."""
        return self.network == ["*"]

    @property
    def hosts(self) -> list[str]:
        """The hosts that it may reach through the proxy, and no others; none: there is no proxy."""
        return [] if self.has_network else self.network


def _network_problems(network: list[str], sandbox: str) -> Iterator[str]:
    if network == ["*"]:
        return
    if "*" in network:
        yield 'network: "*" is the whole network; leave the other hosts out, or "*"'
        return
    for entry in network:
        try:
            Receiver.of(entry)
        except ValueError as error:
            yield f"network: {error}"
    if network and sandbox == "off":
        yield 'network: hosts hold in the sandbox alone; leave out `sandbox = "off"`, or the hosts'


class AgentsFile(Value):
    """The content of an agents.toml."""

    agents: dict[Name, CodingAgent] = Field(default_factory=dict, max_length=MAX_AGENTS)


def file_of(settings: Settings) -> Path:
    """Where the agents are read from."""
    return settings.of(CodingAgentSettings).agents or settings.state_dir / FILE


def read_agents(settings: Settings) -> Mapping[str, CodingAgent]:
    """The agents by name; none if there is no file and none is named. Raises SettingError."""
    path = file_of(settings)
    is_named = settings.of(CodingAgentSettings).agents is not None
    text = read_text(path, SETTING, is_named=is_named, may_do="have programs started")
    if text is None:
        return {}
    return checked(shaped(AgentsFile, text, path, SETTING, foreign=_FOREIGN).agents, "agents", text, path, SETTING)


def unknown(name: str, known: Mapping[str, CodingAgent], path: Path) -> str:
    """The sentence about an agent that is not in the file."""
    if not known:
        return f"there is no coding agent '{name}': {path} names none; write [agents.{name}] with its command there"
    hint = Hints().question(name, list(known)) or f"; there are {', '.join(known)}"
    return f"there is no coding agent '{name}' in {path}{hint}"


def agent_of(name: str, settings: Settings) -> CodingAgent:
    """The agent of that name, as the file is now. Raises ToolError UNKNOWN_AGENT_NAME, BAD_SETTING."""
    try:
        known = read_agents(settings)
    except SettingError as error:
        raise ToolError("AGENTS_UNREADABLE", error.message) from None
    if name not in known:
        raise ToolError("NO_CODING_AGENT", unknown(name, known, file_of(settings)))
    return known[name]
