"""What of this machine makes plans less safe than they could be, each with the command that mends it.

For `plan doctor`. Starts and changes nothing, asks no server. What depends on the sandbox is found in `client.doctor`.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from plansurvive.plans.text.lists import some
from plansurvive.runtime import server, temporal_binary
from plansurvive.runtime.private_files import trouble, untrusted
from plansurvive.runtime.settings import Settings

FIRST_PERSON = 1_000
"""User ids of people begin here, those of services lie below (useradd, login.defs)."""
NO_SHELLS = ("nologin", "false", "sync")
KEY_NAMES = (b"OPENAI_API_KEY", b"TEMPORAL_API_KEY", b"api_key")
_APPARMOR = (
    "printf 'abi <abi/4.0>,\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }\\n'"
    " | sudo tee /etc/apparmor.d/bwrap && sudo apparmor_parser -r /etc/apparmor.d/bwrap"
)


class Weakness(NamedTuple):
    """One weakness."""

    code: str
    """Stable; `plans/error_codes.py` lists all."""
    text: str
    """What it is, and what to do."""


def weaknesses(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[Weakness]:
    """Every weakness found, the worst first; empty if there is none. `environ` is that of the process that asks."""
    found = [*_of_server(settings), *_of_state(settings.state_dir), *_of_users(settings, pwd.getpwall())]
    found += [*_of_page(settings), *_of_workspace(settings), *_of_path(settings, environ), *_of_keys(settings, environ)]
    return [*found, *_of_temporal(settings), *of_crashes()]


def _of_server(settings: Settings) -> Iterator[Weakness]:
    running = server.recorded(settings)
    again = "run `plan down`; the next command starts the server again, with all plans"
    if running is None:
        return
    if running.guard is None or not running.guard.is_alive():
        text = f"the Temporal UI at {running.ui} is not reachable: the proxy in front of it has ended; {again}"
        yield Weakness("UI_WITHOUT_GUARD", text)
    elif not running.is_closed:
        text = "web pages in a browser may read the server's metrics: other servers use all ports that browsers refuse"
        yield Weakness("METRICS_FOR_BROWSERS", f"{text}; stop one of those and {again}")


def _of_state(directory: Path) -> Iterator[Weakness]:
    if not directory.exists():
        return
    if problem := trouble(directory):
        yield Weakness("STATE_REPLACEABLE", problem)
    elif directory.stat().st_mode & 0o077:
        yield Weakness("STATE_READABLE", f"other users can look into {directory}; run `chmod 700 {directory}`")


def _of_users(settings: Settings, known: Iterable[pwd.struct_passwd]) -> Iterator[Weakness]:
    people = other_people(known)
    if people and settings.decisions != "signed":
        shown = some(people, 5)
        text = (
            f"other people can log in to this machine ({shown}) and could approve steps by the Temporal server's port"
        )
        yield Weakness("OTHER_USERS", f"{text}; set PLANS_DECISIONS=signed")


def _of_page(settings: Settings) -> Iterator[Weakness]:
    if settings.web_login != "link" and settings.decisions != "signed":
        text = (
            "people log in to the web page, but those who reach the Temporal server can decide in any name without it"
        )
        yield Weakness("WEB_UNSIGNED", f"{text}; set PLANS_DECISIONS=signed for the page and its workers")


def other_people(known: Iterable[pwd.struct_passwd]) -> list[str]:
    """The names of those who can log in to this machine, but for this user and root."""
    return sorted(
        entry.pw_name
        for entry in known
        if FIRST_PERSON <= entry.pw_uid < 65_534
        and entry.pw_uid != os.geteuid()
        and Path(entry.pw_shell or "/bin/sh").name not in NO_SHELLS
    )


def _of_workspace(settings: Settings) -> Iterator[Weakness]:
    place = settings.workspace
    if place is not None and place.stat().st_mode & 0o002:
        yield Weakness("WORKSPACE_WRITABLE", f"everybody can change files in {place}; run `chmod o-w {place}`")


def _of_path(settings: Settings, environ: Mapping[str, str]) -> Iterator[Weakness]:
    for entry in dict.fromkeys(environ.get("PATH", os.defpath).split(os.pathsep)):
        place = Path(entry)
        if not place.is_absolute():
            text = f"PATH has the entry {entry!r}, so that programs are looked for wherever a command runs; remove it"
            yield Weakness("PATH_RELATIVE", text)
        elif settings.workspace and place.resolve().is_relative_to(settings.workspace):
            text = f"PATH has {place}, which is in the workspace: plans can put programs there; remove it from PATH"
            yield Weakness("PATH_IN_WORKSPACE", text)
        elif place.is_dir() and (problem := untrusted(place)):
            yield Weakness("PATH_WRITABLE", f"PATH has {place}, but {problem}")


def _of_keys(settings: Settings, environ: Mapping[str, str]) -> Iterator[Weakness]:
    """Files in which people keep API keys, if others may read them."""
    named = [environ[name] for name in ("TEMPORAL_CONFIG_FILE", "TEMPORAL_CLIENT_CONFIG_FILE") if environ.get(name)]
    folders = [Path.cwd(), *([settings.workspace] if settings.workspace else []), *_home(environ)]
    for path in dict.fromkeys([*map(Path, named), *(folder / ".env" for folder in folders)]):
        with suppress(OSError):
            if path.is_file() and path.stat().st_mode & 0o044 and _is_reachable(path) and _has_key(path):
                yield Weakness("KEY_READABLE", f"other users can read the API key in {path}; run `chmod 600 {path}`")


def _home(environ: Mapping[str, str]) -> list[Path]:
    return [Path(environ["HOME"])] if environ.get("HOME") else []


def _is_reachable(path: Path) -> bool:
    """Whether others may pass all directories above."""
    return all(parent.stat().st_mode & 0o011 for parent in path.resolve().parents)


def _has_key(path: Path) -> bool:
    with path.open("rb") as file:
        beginning = file.read(65_536)
        return any(name in beginning for name in KEY_NAMES)


def _of_temporal(settings: Settings) -> Iterator[Weakness]:
    for problem in temporal_binary.weaknesses(settings):
        yield Weakness("TEMPORAL_PASSED_OVER", f"a `temporal` program is {problem}")
    program = temporal_binary.installed(settings)
    is_ours = program is not None and program.parent == temporal_binary.cache_folder(settings)
    if program and is_ours and not temporal_binary.is_recorded(program):
        text = f"{program} was put there without a checksum"
        yield Weakness("TEMPORAL_UNCHECKED", f"{text}; run `rm {program}`: the next command installs it again")


def of_crashes(kernel: Path = Path("/proc/sys/kernel")) -> Iterator[Weakness]:
    """Whether the memory of a program that crashes, secrets included, goes to a program of the system."""
    with suppress(OSError):
        pattern = (kernel / "core_pattern").read_text().strip()
        if pattern.startswith("|"):
            text = f"when a command crashes, its memory goes to {pattern[1:].split()[0]}, which runs as root"
            yield Weakness("CRASHES_COLLECTED", f"{text}; run `sudo sysctl -w kernel.core_pattern=core`")


def of_user_namespaces(settings: Path = Path("/proc/sys")) -> Iterator[Weakness]:
    """Why an ordinary user has no user namespaces, which bubblewrap needs."""
    for name, closed, mended in (
        ("kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", _APPARMOR),
    ):
        with suppress(OSError):
            if (settings / name).read_text().strip() == closed:
                text = f"user namespaces are off for ordinary users ({name.replace('/', '.')}={closed})"
                yield Weakness("NO_USER_NAMESPACES", f"{text}, so bubblewrap cannot be used; run `{mended}`")
