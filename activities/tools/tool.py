"""The `@tool` decorator, which makes a function callable from a step, and the `ToolContext` passed to tools.

A tool's description is derived from its signature and docstring, see `activities.tools.tool_schema`.

    @tool(approval="always", timeout=30.0)
    async def restart(service: str, context: ToolContext) -> str:
        \"\"\"Restart a service.

        Args:
            service: Its name.

        Returns:
            The service's output.
        \"\"\"

A tool returns a JSON value or raises `ToolError`. A parameter annotated `ToolContext` receives the context of the
attempt. An async function must not block. A plain function runs in a thread, which cannot be stopped from outside: one
that may take longer than a few seconds should check `context.cancelled`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, overload

from pydantic import BaseModel

from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.outputs.recorder import Outputs, Recorder
from plansurvive.activities.sandbox.sandbox import Sandbox
from plansurvive.activities.tools.tool_schema import bad_tool, describe
from plansurvive.activities.values.errors import bounded, one_line
from plansurvive.activities.workspace.contents import read_text, stamp_at
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.file_names import is_shown_as_bytes, visible
from plansurvive.activities.workspace.workspace import DirectoryEntry, Workspace
from plansurvive.plans.activity_io import Call, Logs, Note
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.model import Retry, ToolSpec
from plansurvive.plans.model.parts import Part
from plansurvive.plans.views.models.live import percent_of

MAX_PROGRESS_CHARACTERS = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")


def no_fault(_: str) -> None:
    """The default of `ToolContext.fault`: do nothing."""


_NO_SANDBOX, _NO_ADDRESSES = Sandbox(), AddressPolicy()
"""Until the attempt begins; made once, as there is a context for each attempt."""


@dataclass
class ToolContext:
    """The context of one attempt: the call, the workspace, and methods to report files, warnings and progress."""

    call: Call
    workspace: Workspace
    effects: Effects
    tool: str = ""
    again: bool = False
    """There was an earlier attempt; its worker may have died after doing all or part of the work."""
    line: str = ""
    """The last line passed to `progress`."""
    percent: int | None = None
    """The last percentage passed to `progress`."""
    files_read: dict[str, Stamp] = field(default_factory=dict)
    files_written: dict[str, Stamp | None] = field(default_factory=dict)
    files_deleted: list[str] = field(default_factory=list)
    files_missing: list[str] = field(default_factory=list)
    """Files that the run knew, and that a tool found deleted when it read them again."""
    notes: list[Note] = field(default_factory=list)
    files_shared: list[str] = field(default_factory=list)
    """Files written or deleted that a concurrent step may have changed instead."""
    shared_with: list[str] = field(default_factory=list)
    """The steps that may have done so."""
    left: dict[str, Part] = field(default_factory=dict)
    """What an attempt that fails says to features, by feature: for their `failed` (plans/run/feature.py)."""
    trace: str = ""
    """The file for the trace of the tool's commands, see `activities.tracing`; empty: they are not traced."""
    files_absent: list[str] = field(default_factory=list)
    """Files that a tool looked for and did not find."""
    files_noted: list[str] = field(default_factory=list)
    """Files for which a tool loaded the agents.md that apply."""
    more_files: int = 0
    """Number of further changed files, beyond those listed."""
    warnings: list[str] = field(default_factory=list)
    sandbox: Sandbox = _NO_SANDBOX
    """The sandbox for commands."""
    addresses: AddressPolicy = _NO_ADDRESSES
    """What HTTP requests may connect to."""
    fault: Callable[[str], None] = no_fault
    """Fault injection: called with the name of each critical point; tests kill the worker there."""
    protected: list[str] = field(default_factory=list)
    """Absolute paths in the workspace that the sandbox makes read-only for commands."""
    level: str = ""
    """The sandbox level the tool's commands ran with; empty: it ran none."""
    logs: Logs | None = None
    """The output of the tool's commands as far as it is stored; sent with each heartbeat, and recorded at the end."""
    began: datetime | None = None
    """When the attempt began, UTC."""
    ended: int = 0
    """When the tool had ended, in ns since 1970; 0: not yet. What changes later is not its own."""
    outputs: Outputs | None = None
    """Where the output of commands goes."""
    confirm: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What the layers around the attempt ask once more right before the tool is called."""
    _stopped: bool = False

    def read(self, path: str, stamp: Stamp | None = None) -> None:
        """Record that the tool read a file; `stamp` defaults to the file's present stamp."""
        stamp = stamp or self._stamp(path)
        if stamp is not None:
            self.files_read[self._relative(path)] = stamp

    def read_text(self, path: str) -> str:
        """The content of a text file, which is recorded as read. Raises ToolError, for example BINARY_FILE."""
        with self.workspace.file(path) as place:
            text = read_text(place)
        self.read(path)
        return text

    @contextmanager
    def reading(self, path: str) -> Iterator[DirectoryEntry]:
        """Open the place of a file to read it; notes if it is gone, so that the run may create it again."""
        with self.workspace.file(path) as place:
            if place.status is None:
                self.files_absent.append(place.path)
                if place.path in self.call.stamps:
                    self.files_missing.append(place.path)
            yield place

    def wrote(self, path: str, stamp: Stamp | None = None) -> None:
        """Record that the tool created or changed a file or directory; `stamp` defaults to its present stamp."""
        self.files_written[self._relative(path)] = stamp or self._stamp(path)

    def deleted(self, path: str) -> None:
        """Record that the tool deleted a file."""
        self.files_deleted.append(self._relative(path))

    def warn(self, text: str) -> None:
        """Add a warning to the run's log; it does not make the call fail."""
        self.warnings.append(bounded(self.masked(text)))

    def masked(self, text: str) -> str:
        """The text without secrets, for a tool that shows a part of it: nothing can find a part of a secret."""
        return self.outputs.secrets.out_of(text) if self.outputs is not None else text

    def progress(self, text: str, percent: float | None = None) -> None:
        """Report progress in one line of at most 200 characters, and in percent; sent with the next heartbeat.

        `percent` below 0 counts as 0, above 100 as 100; None leaves the last one. Raises ToolError BAD_PROGRESS if it
        is not a number.
        """
        if percent is not None:
            self.percent = percent_of(percent)
            if self.percent is None:
                raise ToolError(
                    "BAD_PROGRESS", f"progress is a number from 0 to 100, not {bounded(repr(percent), 100)}"
                )
        self.line = one_line(self.masked(text)[-4 * MAX_PROGRESS_CHARACTERS :])[:MAX_PROGRESS_CHARACTERS]

    def recorder(self, *, is_value: bool = True) -> Recorder:
        """Records the output of a command of the tool in `logs`. `is_value`: the tool returns it, see `texts`."""
        if self.outputs is None:
            raise RuntimeError("only an attempt on a worker can run commands")
        return Recorder(self.outputs, self.progress, self._log, is_value=is_value)

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or timed out, so that its result is no longer needed."""
        return self._stopped

    def cancel(self) -> None:
        """Set `cancelled`."""
        self._stopped = True

    def _log(self, logs: Logs) -> None:
        self.logs = logs.model_copy(update={"began": self.began})

    def _relative(self, path: str) -> str:
        """The path for records. A tool may pass a name as the operating system gives it, which need not be UTF-8."""
        text = visible(path) if is_shown_as_bytes(path) else path
        return self.workspace.relative(text if text.startswith("/") else f"./{text}")

    def _stamp(self, path: str) -> Stamp | None:
        relative = self._relative(path)
        if relative == ".":
            return None
        with self.workspace.file(f"./{relative}") as place:
            return stamp_at(place)


@dataclass(frozen=True)
class Tool:
    """A function and its description. Calling the tool calls the function."""

    spec: ToolSpec
    function: Callable[..., Any]
    arguments: type[BaseModel]
    context_parameter: str | None = None
    touches_files: bool = True

    @property
    def is_opaque(self) -> bool:
        """Whether it may change files without reporting which."""
        return self.spec.effect == "opaque" and self.touches_files

    @cached_property
    def sees_workspace(self) -> bool:
        """Whether it can do anything in the workspace, which must then be the plan's own: given the context, or with
        effects that are watched there. A pure function of its arguments cannot."""
        return self.context_parameter is not None or self.spec.effect != "pure"

    @cached_property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function; others are called in a thread."""
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    async def current(self, context: ToolContext) -> Tool:  # noqa: ARG002
        """The tool as it is for this attempt: itself, unless it is one that may change. Raises ToolError."""
        return self

    def keywords(self, args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """A plan's arguments as keyword arguments of the function. Raises pydantic.ValidationError if invalid."""
        keywords = vars(self.arguments.model_validate(dict(args)))
        return {**keywords, self.context_parameter: context} if self.context_parameter else keywords


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    approval: Literal["never", "always"] = "never",
    approval_exempt: Mapping[str, list[Any]] | None = None,
    sends: Mapping[str, Literal["always", "values"]] | None = None,
    effect: Literal["pure", "keyed", "opaque"] = "opaque",
    timeout: float = 60.0,
    retry: Retry | None = None,
    repeatable: bool = True,
    quoting: Mapping[str, Literal["shell", "python", "jmespath"]] | None = None,
    durable: bool = False,
    value_schema: Mapping[str, Any] | None = None,
    touches_files: bool = True,
    cache: bool = False,
    quick: bool = False,
    reads: Literal["reported", "unknown"] | None = None,
    outside: bool | None = None,
    version: str = "",
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Any) -> Any:
    """Turn a function into a tool; options as in `ToolSpec`. `touches_files=False`: it never changes files on disk.

    `cache=True` also says `reads="reported"` and `outside=False`, unless they are given.

    Raises PlanError BAD_TOOL if the signature or the docstring is incomplete.
    """
    if function is not None:
        return _make(function, name, **options)
    return lambda decorated: _make(decorated, name, **options)


def _make(
    function: Callable[..., Any], name: str | None, *, touches_files: bool = True, cache: bool = False, **options: Any
) -> Tool:
    name = name or function.__name__
    if not _NAME.fullmatch(name):
        raise bad_tool(function, f"has the invalid name '{name}'; use letters, digits, '_', '-' and '.'")
    if cache:
        options = {"reads": "reported", "outside": False} | options
    described = describe(function, ToolContext)
    given = {"value_schema": described.value_schema} | {
        key: value for key, value in options.items() if value is not None
    }
    spec = ToolSpec(
        name=name,
        description=described.text,
        args_schema=described.schema(),
        value=described.value,
        cache=cache,
        **given,
    )
    named = {*spec.quoting, *spec.approval_exempt, *spec.sends}
    unknown = sorted(named - set(spec.args_schema["properties"]))
    if unknown:
        raise bad_tool(function, f"has an option for '{unknown[0]}', which is not one of its arguments")
    return Tool(spec, function, described.arguments, described.context, touches_files)
