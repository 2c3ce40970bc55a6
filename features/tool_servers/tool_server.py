"""One server of tools of `mcp.toml`: how it is reached, what of this machine it sees, and its limits.

A model of what was written, with the checks that need nothing but the table itself. Values of secrets are never in it:
only references to them, which `features.tool_servers.references` reads.
"""

from __future__ import annotations

import fnmatch
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, StringConstraints

from plansurvive.features.tool_servers.references import in_url, looks_secret
from plansurvive.plans.model import Value
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.setting_groups.web import is_loopback

MAX_SERVERS = 100
SERVER = r"^[a-z][a-z0-9_-]{0,39}$"
"""The name of a server: the part before the point in `server.tool`."""
WORKSPACE = "{workspace}"
"""In `args`: the workspace of the plan."""
MEBIBYTE = 1024 * 1024
REDIRECT = "http://127.0.0.1"
"""Where the browser returns to when a person has logged in; the port is any free one."""

Name = Annotated[str, StringConstraints(pattern=SERVER)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]
Text = Annotated[str, StringConstraints(max_length=100_000)]


class OAuth(Value):
    """How a worker gets a token for a server at a URL (OAuth 2.1)."""

    grant: Literal["client_credentials", "authorization_code"] = Field(
        default="client_credentials", description="As the worker itself, or as a person who logged in once."
    )
    client_id: str = Field(default="", max_length=1_000, description="Empty: the worker registers itself, if it may.")
    client_secret: Reference | None = Field(default=None, description="Reference to the client's secret.")
    scope: str = Field(default="", max_length=2_000, description="Scopes to ask for, separated by spaces.")
    issuer: str = Field(default="", max_length=2_000, description="The authorization server, and no other.")

    @property
    def problem(self) -> str:
        """Why no token can be had like this; empty if it can."""
        if self.grant == "client_credentials" and not (self.client_id and self.client_secret and self.issuer):
            return "oauth: `client_credentials` needs clientId, clientSecret (env:NAME or file:PATH) and issuer"
        if self.grant == "authorization_code" and self.client_secret and not self.client_id:
            return "oauth.clientId: is needed where there is a clientSecret"
        if self.issuer and not _is_safe(urlsplit(self.issuer)):
            return "oauth.issuer: write an https URL; plain http is for this machine only"
        return ""


class ToolServer(Value):
    """One server of tools. Exactly one of `command` and `url` is given."""

    command: str = Field(default="", max_length=4_000, description="The program of a server on standard input/output.")
    args: list[Text] = Field(default_factory=list, max_length=200, description="Its arguments.")
    url: str = Field(default="", max_length=4_000, description="A server that is reached by streamable HTTP.")
    env: dict[Variable, Reference] = Field(
        default_factory=dict, max_length=100, description="Variables of the program, each by reference."
    )
    token: Reference | None = Field(default=None, description="Reference to a bearer token for the URL.")
    oauth: OAuth | None = Field(default=None, description="How to get a token for the URL.")
    private: bool = Field(default=False, description="Whether the name in the URL leads into a private network.")
    timeout: float = Field(default=60.0, gt=0, le=86_400, allow_inf_nan=False, description="Seconds of one call.")
    start_timeout: float = Field(default=30.0, gt=0, le=600, allow_inf_nan=False, description="Seconds to its answer.")
    max_result: int = Field(
        default=10 * MEBIBYTE, ge=1_024, le=64 * MEBIBYTE, description="Maximum bytes of one result."
    )
    workspace: Literal["none", "read", "write"] = Field(
        default="none", description="What the program may do with the files of the plan's workspace."
    )
    network: bool = Field(default=False, description="Whether the program may use the network.")
    read: list[str] = Field(default_factory=list, max_length=100, description="Further paths that it may read.")
    tools: list[str] = Field(default_factory=list, max_length=1_000, description="Patterns of tools; none: all.")
    approval: dict[Text, Literal["never", "always"]] = Field(
        default_factory=dict, max_length=1_000, description="By tool, whether it asks; default: always."
    )
    repeatable: list[Text] = Field(
        default_factory=list, max_length=1_000, description="Tools that may be called again after a call was lost."
    )
    deny: list[str] = Field(default_factory=list, max_length=1_000, description="Patterns of tools that are left out.")

    @property
    def is_local(self) -> bool:
        """Whether it is a program of this machine, not a URL."""
        return bool(self.command)

    def offers(self, tool: str) -> bool:
        """Whether plans may use this tool of it."""
        wanted = not self.tools or any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.tools)
        return wanted and not any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.deny)

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, each with the key and what to do."""
        if bool(self.command) == bool(self.url):
            return ["command: name either `command` (a program) or `url`"]
        found = self._of_program() if self.is_local else self._of_url()
        return [problem for problem in found if problem]

    def _of_program(self) -> list[str]:
        return [
            "command: it contains a NUL character" if "\0" in self.command + "".join(self.args) else "",
            *(f"args.{at}: {hint}" for at, text in enumerate(self.args) if (hint := looks_secret(text))),
            *(_of_reference(f"env.{name}", value) for name, value in self.env.items()),
            *(f"read: {path} is not absolute; write the whole path, or ~/..." for path in self.read if _astray(path)),
            "args: {workspace} needs `workspace = \"read\"` or \"write\"" if self._names_a_hidden_workspace else "",
            "token: needs a `url`; a program gets it as a variable: env" if self.token else "",
            "oauth: needs a `url`" if self.oauth else "",
            "private: needs a `url`" if self.private else "",
        ]  # fmt: skip

    def _of_url(self) -> list[str]:
        try:
            url = urlsplit(self.url)
            safe = _is_safe(url)
        except ValueError:
            return ["url: it is not a URL"]
        local = ("args", "env", "read", "network")
        return [
            "" if safe else "url: write https://HOST/...; plain http is for this machine only",
            in_url(url),
            _of_reference("token", self.token),
            "oauth: `token` is another way; choose one" if self.oauth and self.token else "",
            self.oauth.problem if self.oauth else "",
            _of_reference("oauth.clientSecret", self.oauth.client_secret) if self.oauth else "",
            *(f"{name}: is for a `command`" for name in local if getattr(self, name)),
            "workspace: is for a `command`; a server elsewhere cannot see it" if self.workspace != "none" else "",
        ]

    @property
    def _names_a_hidden_workspace(self) -> bool:
        return self.workspace == "none" and any(WORKSPACE in text for text in self.args)


def _of_reference(key: str, value: str | None) -> str:
    if value is None or value.startswith(("env:", "file:")):
        return ""
    return f"{key}: write where the value is, `env:NAME` or `file:PATH`, not the value itself"


def _astray(path: str) -> bool:
    return not home_path(path).is_absolute()


def _is_safe(url: SplitResult) -> bool:
    """Whether a token sent there is read by nobody else: https, or this machine."""
    if not url.hostname or (url.port is not None and not 0 < url.port < 65_536):
        return False
    return url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname))
