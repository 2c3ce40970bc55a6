"""Collects the tools of a worker: the built-in ones and those of the modules listed in `PLANS_TOOLS`.

A module is given by its dotted name or by the path of a `.py` file; every `Tool` in it is registered. Two different
tools of the same name, a module that cannot be imported and a module without a tool are errors at startup.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from plansurvive.activities.tools.durable import agent, ask, coding_agent, plan, sleep, wait_for
from plansurvive.activities.tools.files import FILE_TOOLS
from plansurvive.activities.tools.http import HTTP_TOOLS
from plansurvive.activities.tools.search import SEARCH_TOOLS
from plansurvive.activities.tools.shell import SHELL_TOOLS
from plansurvive.activities.tools.tool import Tool
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.sides import packages

OF_CORE = (
    "check_plan",
    "record_end",
    "write_summary",
    "ask_llm",
    "snapshot_workspace",
    "ask",
    "agent",
    "plan",
    "inputs",
    "compare_files",
    "list_items",
    "plan_outputs",
)
"""Activities of the core that are not tools, and keywords of plans."""


def reserved_names() -> frozenset[str]:
    """The names that a tool must not have: those of the core, and of the activities of features."""
    return frozenset(OF_CORE).union(*(getattr(each, "ACTIVITIES", ()) for each in packages()))


def builtin_tools() -> dict[str, Tool]:
    """The built-in tools by name."""
    tools = (*FILE_TOOLS, *SEARCH_TOOLS, *SHELL_TOOLS, *HTTP_TOOLS, sleep, ask, wait_for, agent, plan, coding_agent)
    return {tool.spec.name: tool for tool in tools}


def load_tools(modules: Sequence[str]) -> dict[str, Tool]:
    """The built-in tools and those of `modules`. Raises PlanError BAD_SETTING:PLANS_TOOLS, naming the module."""
    tools = builtin_tools()
    for name in modules:
        found = [value for value in vars(_import(name)).values() if isinstance(value, Tool)]
        if not found:
            raise _refused(name, "contains no tools; decorate its functions with @tool")
        for tool in found:
            _add(tools, tool, name)
    return tools


def source_files(modules: Sequence[str]) -> tuple[str, ...]:
    """The real paths of the files of these modules, or of their directories; none for a module that is missing."""
    return tuple(path for name in modules if (path := _source_file(name)))


def _source_file(name: str) -> str:
    if name.endswith(".py") or "/" in name:
        return str(Path(name).resolve())
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""  # `load_tools` says so
    if spec is None or not spec.origin or not Path(spec.origin).exists():
        return ""
    return str(Path(spec.origin).resolve().parent if spec.submodule_search_locations else Path(spec.origin).resolve())


def with_receivers(tools: Mapping[str, Tool], receivers: Sequence[str]) -> dict[str, Tool]:
    """The tools with the hosts that may receive from them; whether they need approval depends on these."""
    hosts = {"receivers": list(receivers)}
    return {
        name: replace(tool, spec=tool.spec.model_copy(update=hosts)) if tool.spec.sends else tool
        for name, tool in tools.items()
    }


def _add(tools: dict[str, Tool], tool: Tool, module: str) -> None:
    name = tool.spec.name
    if name in reserved_names():
        raise _refused(module, f"has a tool called '{name}', which is a reserved name; rename it")
    if tools.setdefault(name, tool) is not tool:
        raise _refused(module, f"has a tool called '{name}', but another tool already has this name; rename it")


def _import(name: str) -> ModuleType:
    try:
        return _import_file(Path(name)) if name.endswith(".py") or "/" in name else importlib.import_module(name)
    except PlanError as error:
        raise _refused(name, f"has a tool that cannot be used: {error.message}") from error
    except FileNotFoundError as error:
        if error.filename != str(Path(name).resolve()):
            raise _refused(name, f"cannot be imported: {error}") from error
        raise PlanError(f"PLANS_TOOLS: there is no file {name}; correct the path", "BAD_SETTING:PLANS_TOOLS") from error
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise _refused(name, f"cannot be imported: {error}; install what it imports beside `plan`") from error
        raise _refused(name, "is not installed here; name a file such as tools/words.py, or install it") from error
    except (Exception, SystemExit) as error:
        raise _refused(name, f"cannot be imported: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> ModuleType:
    name = f"plans_tools_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ImportError("it is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # get_type_hints looks the module up here while it loads
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _refused(module: str, problem: str) -> PlanError:
    return PlanError(f"PLANS_TOOLS: the module '{module}' {problem}", "BAD_SETTING:PLANS_TOOLS")
