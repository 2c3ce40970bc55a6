"""Checks what the calls of built-in tools reach: paths that leave the workspace, URLs that cannot be asked.

Judged is what the plan says: of a path with references, the names before the first one. Which directory the workspace
is, and what PLANS_HTTP_ALLOW of the worker opens, is known only to who asks: `absolute_paths` and `closed_addresses`
are for those; `call_problems` holds in every workspace.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import ip_address

from plansurvive.plans.definition.scopes import CallOf
from plansurvive.plans.model import Input, Problem, ToolSpec
from plansurvive.plans.model.receivers import receives

CODE = "PATH_OUTSIDE"
PATHS: Mapping[str, str] = {
    "read_file": "path",
    "read_json": "path",
    "write_file": "path",
    "edit_file": "path",
    "delete_file": "path",
    "create_directory": "path",
    "list_directory": "path",
    "find_files": "path",
    "run_command": "cwd",
}
"""The argument of a built-in tool that is a path."""
FOREIGN = re.compile(r"^([A-Za-z]:[\\/]|\\\\|~(/|$)|~\w+/|[A-Za-z][A-Za-z0-9+.-]*://)")
"""Drive letters, UNC names, home directories and URLs: meant as places outside, even where they are valid names."""
_URL = re.compile(r"https?://[^/?#]", re.IGNORECASE)
_INPUT = re.compile(r"\{\{\s*inputs\.([\w-]+)\s*\}\}|^\$inputs\.([\w-]+)$")
_HOST = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?=[:/?#]|$)", re.IGNORECASE)


def call_problems(call: CallOf) -> Iterator[Problem]:
    """A path that leaves every workspace, or a URL that is none."""
    name, path = _path_of(call)
    if path and (FOREIGN.match(path) or _climbs(path)):
        text = f"'{path[:200]}' is outside the workspace; write a path relative to the workspace"
        if _URL.match(path):
            text = f"'{path[:200]}' is a URL, and not a path; http_request reads URLs"
        yield call.problem(CODE, f"args.{name}", text)
    url = call.args.get("url") if call.tool == "http_request" else None
    if isinstance(url, str) and url and not url.startswith("$") and "{{" not in url and not _URL.match(url):
        meant = f"; write https://{url[:200]}" if re.match(r"[\w-]+(\.[\w-]+)+(?=[:/]|$)", url) else ""
        text = f"Invalid args for http_request: '{url[:200]}' is not an http or https URL{meant}"
        yield call.problem("INVALID_ARGS", "args.url", text)


def absolute_paths(calls: Iterable[CallOf], workspaces: Collection[str], severity: str = "error") -> Iterator[Problem]:
    """Absolute paths that lead out of a workspace, given as it is spelt."""
    tops = [top.rstrip("/") for top in workspaces]
    for call in calls:
        name, path = _path_of(call)
        if not path.startswith("/") or any(_is_in(posixpath.normpath(path), top) for top in tops):
            continue
        text = (
            f"'{path[:200]}' is outside the workspace '{next(iter(workspaces))}'; write a path relative to the"
            " workspace, or choose one with --workspace that contains it"
        )
        yield call.problem(CODE, f"args.{name}", text).model_copy(update={"severity": severity})


def closed_addresses(
    calls: Iterable[CallOf], tools: Mapping[str, ToolSpec], inputs: Mapping[str, Input]
) -> Iterator[Problem]:
    """Warnings about URLs of this machine and of private networks that the worker's settings do not open.

    Of `inputs`, the plan's own, the defaults count: a plan that is tried at home often has its server there.
    """
    spec = tools.get("http_request")

    def default_of(match: re.Match[str]) -> str:
        declared = inputs.get(match[1] or match[2])
        return str(declared.default) if declared is not None and declared.default is not None else match[0]

    for call in calls:
        url = call.args.get("url") if call.tool == "http_request" else None
        if spec is None or not isinstance(url, str) or not (found := _HOST.match(url := _INPUT.sub(default_of, url))):
            continue
        host = found[1].strip("[]").lower().removesuffix(".")
        if _is_private(host) and not receives(url, spec.receivers):
            text = (
                f"'{found[1]}' is not a public address: http_request refuses it unless PLANS_HTTP_ALLOW of the worker"
                " names it"
            )
            yield call.problem("ADDRESS_REFUSED", "args.url", text).model_copy(update={"severity": "warning"})


def _path_of(call: CallOf) -> tuple[str, str]:
    """The argument that is a path, and that up to the last name before its first reference; empty if there is none."""
    name = PATHS.get(call.tool, "")
    value = call.args.get(name)
    if not isinstance(value, str) or value.startswith(("$", "{{")):
        return name, ""
    before, reference, _ = value.partition("{{")
    return name, before[: before.rfind("/") + 1] if reference else before


def _climbs(path: str) -> bool:
    """Whether a relative path leaves the directory that it begins in."""
    depth = 0
    for name in path.split("/") if ".." in path and not path.startswith("/") else ():
        depth += -1 if name == ".." else name not in ("", ".")
        if depth < 0:
            return True
    return False


def _is_in(path: str, top: str) -> bool:
    return path == (top or "/") or path.startswith(f"{top}/")


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:
        return False
