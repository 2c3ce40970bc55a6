"""`@tool`: a function a step may name. Its description comes from its signature and docstring, see
`activities.tools.tool_schema`.

    @tool(approval="always", timeout=30.0)
    async def restart(service: str, context: ToolContext) -> str:
        \"\"\"Restart a service.

        Args:
            service: Its name.

        Returns:
            What the service said.
        \"\"\"

A tool returns a JSON value or raises `ToolError`. A parameter annotated `ToolContext` is given by the runner. An
async function must not block; a plain one runs in a thread, which cannot be stopped from outside: if it may take
longer than a few seconds it should look at `context.cancelled`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from pydantic import BaseModel

from activities.attempt.errors import one_line
from activities.sandbox.sandbox import Sandbox
from activities.tools.tool_schema import bad_tool, describe
from activities.workspace.contents import stamp_at
from activities.workspace.effect_log import Effects
from activities.workspace.workspace import Workspace
from plans.activity_io import Call, Note
from plans.file_stamps import Stamp
from plans.model import Retry, ToolSpec

MAX_PROGRESS_CHARACTERS = 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,199}")


def no_fault(_: str) -> None:
    """What happens at such a point in production: nothing."""


@dataclass
class ToolContext:
    """What a tool may know and say besides its arguments; one per attempt."""

    call: Call
    workspace: Workspace
    effects: Effects
    tool: str = ""
    again: bool = False
    """An earlier attempt may have done the work, or part of it, without living to report it."""
    line: str = ""
    """What the tool last said about its progress."""
    files_read: dict[str, Stamp] = field(default_factory=dict)
    files_written: dict[str, Stamp | None] = field(default_factory=dict)
    files_deleted: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    files_shared: list[str] = field(default_factory=list)
    """Written or deleted, but perhaps by another step that ran at the same time."""
    more_files: int = 0
    """Further files it changed, too many to be listed."""
    warnings: list[str] = field(default_factory=list)
    sandbox: Sandbox = field(default_factory=Sandbox)
    """What commands are to be run in."""
    fault: Callable[[str], None] = no_fault
    """Called with the name of each point at which the death of the worker matters; tests let it die there."""
    protected: list[str] = field(default_factory=list)
    """Protected files and directories of the workspace, absolute: a sandbox keeps commands from changing them."""
    level: str = ""
    """How far the commands it ran were shut in; empty: it ran none."""
    _stopped: threading.Event = field(default_factory=threading.Event)

    def read(self, path: str, stamp: Stamp | None = None) -> None:
        """Record a file as read, so that the run knows it; without a stamp, as it is now."""
        stamp = stamp or self._stamp(path)
        if stamp is not None:
            self.files_read[self.workspace.relative(path)] = stamp

    def wrote(self, path: str, stamp: Stamp | None = None) -> None:
        """Record a file or directory as made or changed; without a stamp, as it is now."""
        self.files_written[self.workspace.relative(path)] = stamp or self._stamp(path)

    def deleted(self, path: str) -> None:
        """Record a file as deleted."""
        self.files_deleted.append(self.workspace.relative(path))

    def warn(self, text: str) -> None:
        """Tell people something about the call that is no failure; it goes into the run's log."""
        self.warnings.append(text)

    def progress(self, text: str) -> None:
        """Say in one line where the work stands; shown with the next heartbeat."""
        self.line = one_line(text[-4 * MAX_PROGRESS_CHARACTERS :])[:MAX_PROGRESS_CHARACTERS]

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more: cancelled, or out of time."""
        return self._stopped.is_set()

    def cancel(self) -> None:
        """Tell the tool that nobody waits any more."""
        self._stopped.set()

    def _stamp(self, path: str) -> Stamp | None:
        relative = self.workspace.relative(path)
        if relative == ".":
            return None
        with self.workspace.file(relative) as place:
            return stamp_at(place)


@dataclass(frozen=True)
class Tool:
    """A described function. Calling it calls the function."""

    spec: ToolSpec
    function: Callable[..., Any]
    arguments: type[BaseModel]
    context_parameter: str | None = None
    touches_files: bool = True

    @property
    def is_opaque(self) -> bool:
        """Whether it may change files without saying which."""
        return self.spec.effect == "opaque" and self.touches_files

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def keywords(self, args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """A plan's arguments as the function takes them. Raises pydantic.ValidationError where they do not fit."""
        given = self.arguments.model_validate(dict(args))
        keywords = {name: getattr(given, name) for name in type(given).model_fields}
        return keywords | ({self.context_parameter: context} if self.context_parameter else {})


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    approval: Literal["never", "always"] = "never",
    approval_exempt: Mapping[str, list[Any]] | None = None,
    effect: Literal["pure", "keyed", "opaque"] = "opaque",
    timeout: float = 60.0,
    retry: Retry | None = None,
    repeatable: bool = True,
    quoting: Mapping[str, Literal["shell", "python"]] | None = None,
    durable: bool = False,
    touches_files: bool = True,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Any) -> Any:
    """Make a function a tool; the options are those of `ToolSpec`. `touches_files` false: it changes no file on disk.

    Raises PlanError BAD_TOOL when the signature or the docstring leaves something open.
    """
    if function is not None:
        return _make(function, name, options)
    return lambda decorated: _make(decorated, name, options)


def _make(function: Callable[..., Any], name: str | None, options: dict[str, Any]) -> Tool:
    name = name or function.__name__
    if not _NAME.fullmatch(name):
        raise bad_tool(function, f"cannot be called '{name}'; use letters, digits, '_', '-' and '.'")
    touches_files = bool(options.pop("touches_files", True))
    found = describe(function, ToolContext)
    given = {key: value for key, value in options.items() if value is not None}
    spec = ToolSpec(name=name, description=found.text, args_schema=found.schema(), value=found.value, **given)
    unknown = sorted((set(spec.quoting) | set(spec.approval_exempt)) - set(spec.args_schema["properties"]))
    if unknown:
        raise bad_tool(function, f"has a rule for '{unknown[0]}', which is none of its arguments")
    return Tool(spec, function, found.arguments, found.context, touches_files)
