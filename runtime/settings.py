"""Every setting of the project, read once from an environment that is passed in.

`Settings.read(environ)` is the only place that looks at `PLANS_*`. A value that cannot be used, or a variable that
begins with `PLANS_` and means nothing, is refused at once with its name: a `SettingError`, exit code 2. The
`TEMPORAL_*` variables are kept as they are for `temporalio.envconfig`, which gives them their meaning. The key of the
LLM is never shown, in no error and no dump.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    field_validator,
)

from plans.errors import PlanError
from plans.llm.endpoint import OPENAI, endpoint_problem

PREFIX = "PLANS_"


class SettingError(PlanError):
    """One or more settings that cannot be used. The code names the first, the message all of them."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        lines = [f"{name}: {problem}" for name, problem in problems.items()]
        super().__init__("\n".join(lines), f"BAD_SETTING:{next(iter(problems))}")


def _names(value: object) -> object:
    """Comma-separated text as a tuple; files become absolute, since a worker runs in another directory."""
    if not isinstance(value, str):
        return value
    parts = [part.strip() for part in value.split(",") if part.strip()]
    return tuple(str(Path(part).absolute()) if part.endswith(".py") else part for part in parts)


def _listed(value: object) -> object:
    """Comma-separated text as a tuple, each name once."""
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


QueueName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\s\x00-\x1f]+$")]


def _directories(value: object) -> object:
    """Comma-separated text as a tuple of absolute directories."""
    if not isinstance(value, str):
        return value
    return tuple(str(Path(part.strip()).expanduser().absolute()) for part in value.split(",") if part.strip())


class Settings(BaseModel):
    """What the environment says, checked. Flags of a command replace single fields with `with_flags`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task_queue: str = Field(default="plans", min_length=1, max_length=1_000, pattern=r"^[^\s\x00-\x1f]+$")
    """Queue that plans are put on and workers listen to."""
    queues: Annotated[tuple[QueueName, ...], BeforeValidator(_listed)] = ()
    """More queues whose steps a worker takes: those of plans and steps with `queue`."""
    workspace: Path | None = None
    """Directory for plans that name none."""
    state_dir: Path
    """Data of the embedded server, values too large for history, summaries, logs."""
    cache_dir: Path
    """Programs the project fetched; may be deleted at any time."""
    tools: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """Modules or .py files with tools of the user's own."""
    approvals: Literal["normal", "strict"] = "normal"
    """strict: no plan and no flag can waive an approval."""
    edits: Literal["normal", "strict"] = "normal"
    """strict: a file that the run has neither made nor read is not edited."""
    server: Literal["auto", "embedded"] = "auto"
    """embedded: pass over a server that happens to listen on localhost:7233."""
    auto_worker: bool = True
    """Whether a command keeps a worker running in the background on this machine."""
    inline_bytes: int = Field(default=8_192, ge=256, le=262_144)
    """A longer value is kept in a file instead of Temporal's history."""
    storage: str = Field(default="local", pattern=r"^(local|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])$")
    """Where data too large for history is kept: `local`, in the state directory, or `s3://BUCKET`."""
    external_bytes: int = Field(default=65_536, ge=1_024, le=1_048_576)
    """Payloads of workflows from this size on are kept there; history holds a reference."""
    max_activities: int = Field(default=100, ge=1, le=1_000)
    """Steps one worker runs at the same time."""
    grace: float = Field(default=10.0, ge=0, le=86_400, allow_inf_nan=False)
    """Seconds that running steps get to finish when a worker is told to stop."""
    sandbox: Literal["auto", "off", "required", "landlock", "bwrap"] = "auto"
    """How far commands are shut in: the best there is, nothing, level 2 or refuse, Landlock, bubblewrap."""
    sandbox_network: Literal["step", "on", "off"] = "step"
    """Which commands in a sandbox have the network: those that ask for it, all, none."""
    sandbox_read: Annotated[tuple[str, ...], BeforeValidator(_directories)] = ()
    """Further directories that commands in a sandbox may read, such as those of tools in a home."""
    limit_cpu: int | None = Field(default=None, ge=1, le=1_000_000)
    """Seconds of processor time of each process of a command."""
    limit_memory_mb: int | None = Field(default=None, ge=64, le=16_777_216)
    """Address space of each process of a command."""
    limit_file_mb: int | None = Field(default=None, ge=1, le=16_777_216)
    """Size of a file that a command writes."""
    limit_open_files: int = Field(default=4_096, ge=16, le=1_048_576)
    """Files that each process of a command has open."""
    limit_processes: int | None = Field(default=2_000, ge=8, le=1_000_000)
    """Processes of a command at the same time."""
    limit_free_mb: int | None = Field(default=100, ge=1, le=16_777_216)
    """Room that a command must leave on the disk."""
    undo: Literal["off", "files", "full"] = "files"
    """What is kept for undoing: nothing, what steps read and wrote, before each command the whole workspace."""
    undo_mb: int = Field(default=256, ge=1, le=1_048_576)
    """Room for it; the oldest goes first."""
    model: str | None = Field(default=None, min_length=1, max_length=200)
    """Name of the LLM."""
    llm_timeout: float = Field(default=120.0, ge=1, le=1_800, allow_inf_nan=False)
    """Seconds the LLM has for one answer."""
    openai_api_key: SecretStr | None = None
    """Key of the LLM endpoint; without it only endpoints on this machine can be asked."""
    openai_base_url: str = OPENAI
    """The LLM endpoint: https, or http on this machine."""
    temporal: dict[str, str] = Field(default_factory=dict)
    """The TEMPORAL_* variables, for `temporalio.envconfig`."""

    @field_validator("workspace")
    @classmethod
    def _workspace_is_usable(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        if not path.is_dir():
            raise ValueError(f"{path} is no directory; create it or name another")
        resolved = path.resolve()
        if resolved == Path(resolved.anchor):
            raise ValueError("the root of the file system is no workspace; name a directory of its own")
        if not os.access(resolved, os.W_OK | os.X_OK):
            raise ValueError(f"{resolved} cannot be written to; change its permissions or name another")
        return resolved

    @field_validator("openai_api_key")
    @classmethod
    def _key_can_be_sent(cls, key: SecretStr | None) -> SecretStr | None:
        text = key.get_secret_value() if key else ""
        if len(text) > 4_000 or any(not "!" <= char <= "~" for char in text):
            raise ValueError("it holds spaces, line ends or characters no key has; copy the key again")
        return key

    @field_validator("openai_base_url")
    @classmethod
    def _endpoint_is_safe(cls, url: str) -> str:
        problem = endpoint_problem(url)
        if problem:
            raise ValueError(problem)
        return url

    @field_validator("state_dir", "cache_dir")
    @classmethod
    def _directory_is_possible(cls, path: Path) -> Path:
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path} is a file; name a directory")
        return path.absolute()

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """The settings of an environment; raises SettingError with every problem at once."""
        given = {name[len(PREFIX) :].lower(): text for name, text in environ.items() if name.startswith(PREFIX)}
        unknown = {_variable(name): _unknown(name) for name in given if name not in _READ}
        values: dict[str, Any] = _default_directories(environ) | {n: t for n, t in given.items() if n in _READ}
        values["temporal"] = {name: text for name, text in environ.items() if name.startswith("TEMPORAL_")}
        values |= {name: environ[name.upper()] for name in _OPENAI if environ.get(name.upper())}
        return cls._checked(values, unknown)

    def with_flags(self, **flags: object) -> Self:
        """The same settings with those flags that were given (not None) in place; raises SettingError."""
        given = {name: value for name, value in flags.items() if value is not None}
        return self._checked(self.model_dump() | given, {})

    def make_state_dir(self) -> None:
        """Make the state directory, for this user only, unless it is there. Raises SettingError."""
        try:
            self.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            text = f"{self.state_dir} cannot be made: {error.strerror}; name a directory of your own"
            raise SettingError({"PLANS_STATE_DIR": text}) from error

    def as_environ(self) -> dict[str, str]:
        """The variables that give these settings again, the key of the LLM too; the TEMPORAL_* ones are left out."""
        given = {name: getattr(self, name) for name in sorted(_READ | _OPENAI)}
        return {_variable(name): _text(value) for name, value in given.items() if value not in (None, ())}

    @classmethod
    def _checked(cls, values: Mapping[str, Any], problems: Mapping[str, str]) -> Self:
        try:
            settings = cls.model_validate(values)
        except ValidationError as error:
            bad = {_variable(str(each["loc"][0])): _sentence(each) for each in error.errors()}
            raise SettingError({**bad, **problems}) from None
        if problems:
            raise SettingError(problems)
        return settings


_OPENAI = frozenset(("openai_api_key", "openai_base_url"))
"""Read from variables that other programs know as well."""
_READ = frozenset(Settings.model_fields) - {"temporal"} - _OPENAI


def _variable(field: str) -> str:
    return field.upper() if field in _OPENAI else PREFIX + field.upper()


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _unknown(field: str) -> str:
    near = difflib.get_close_matches(field, sorted(_READ), n=1, cutoff=0.0)
    return f"there is no such setting; did you mean {_variable(near[0])}?"


def _sentence(error: Any) -> str:
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["loc"][0] in _OPENAI:  # either may hold a key or a password
        return message
    return f"{message} (it is {str(error['input'])[:100]!r})"


def _default_directories(environ: Mapping[str, str]) -> dict[str, Any]:
    home = Path(environ.get("HOME") or Path.home())
    state = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    return {"state_dir": state / "plans", "cache_dir": cache / "plans"}
