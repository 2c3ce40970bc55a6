"""The user service in the words of systemd and of launchd: text and quoting, nothing that touches the machine.

Both run the same command with the variables of one file, which is written so that systemd (`EnvironmentFile=`) and a
shell read it alike. The unit and the property list hold no variables, since others may read them.
"""

from __future__ import annotations

import plistlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.parsers.expat import ExpatError

from plansurvive.plans.errors import PlanError

LABEL = "plans-that-survive"
"""The name of the service for launchd; the file name of its property list."""
RESTART_SECONDS = 5
STOP_MARGIN = 45
"""Seconds to stop the server in, beside the grace of running steps."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNSAFE = re.compile(r"""["'\\]""")
"""What systemd takes in no name of a program."""
_PLAIN = re.compile(r"[A-Za-z0-9_./:=+@,-]+")
_SHELL = re.compile(r'["\\$`]')


class ServiceRefused(PlanError):
    """The user service cannot be installed or removed here; the message says why, and what to do instead."""

    code = "SERVICE_REFUSED"


@dataclass(frozen=True)
class Unit:
    """What a user service runs."""

    command: Sequence[str]
    """A program with an absolute path, and its arguments."""
    directory: Path
    """The working directory, from which `python -m plansurvive` is found."""
    variables: Path
    """The file with its environment."""
    log: Path
    """Where launchd writes what it prints; systemd has its journal."""
    grace: float
    """Seconds that running steps have when it stops."""


def variables_text(variables: Mapping[str, str]) -> str:
    """The file of variables. Raises ServiceRefused for one that systemd would not take."""
    rows = ["# Written by `plan up --install`. It may hold keys: only you may read it."]
    for name, text in sorted(variables.items()):
        if not _NAME.fullmatch(name) or _CONTROL.search(text) or text.encode(errors="replace").decode() != text:
            raise ServiceRefused(f"the variable {name!r} has characters that a service cannot be given; unset it")
        rows.append(f'{name}="{_SHELL.sub(_escaped, text)}"')
    return "\n".join(rows) + "\n"


def systemd_text(unit: Unit) -> str:
    """The unit of systemd: `plans.service`."""
    return f"""\
# Written by `plan up --install`; `plan up --uninstall` removes it.
[Unit]
Description=Plans that survive: Temporal server, UI and worker
StartLimitIntervalSec=0

[Service]
Type=exec
WorkingDirectory={_path(unit.directory)}
EnvironmentFile={_path(unit.variables)}
ExecStart={_command(unit.command)}
Restart=on-failure
RestartSec={RESTART_SECONDS}
KillMode=mixed
TimeoutStopSec={round(unit.grace) + STOP_MARGIN}

[Install]
WantedBy=default.target
"""


def launchd_text(unit: Unit) -> str:
    """The property list of launchd. It knows no file of variables: a shell reads them, and becomes the command."""
    shell = ["/bin/sh", "-c", 'set -a && . "$0" && exec "$@"', str(unit.variables), *unit.command]
    found = {
        "Label": LABEL,
        "ProgramArguments": shell,
        "WorkingDirectory": str(unit.directory),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": RESTART_SECONDS,
        "ExitTimeOut": round(unit.grace) + STOP_MARGIN,
        "StandardOutPath": str(unit.log),
        "StandardErrorPath": str(unit.log),
        "Umask": 0o077,
    }
    return plistlib.dumps(found, sort_keys=False).decode()


def variables_of(text: str) -> str | None:
    """The file of variables that an installed service names; None if the text is not that of a service of ours."""
    if line := re.search(r"(?m)^EnvironmentFile=(.+)$", text):
        return line[1].replace("%%", "%")
    try:
        return str(plistlib.loads(text.encode())["ProgramArguments"][3])
    except (ValueError, KeyError, IndexError, TypeError, ExpatError):
        return None


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


def _path(path: Path) -> str:
    """A path as a whole setting of systemd: only `%` means something there; blanks belong to it."""
    text = str(path)
    if _CONTROL.search(text) or "\n" in text or text.endswith(("\\", " ", "\t")):
        raise ServiceRefused(f"systemd cannot be given the path {text!r}; choose another directory")
    return text.replace("%", "%%")


def _command(parts: Sequence[str]) -> str:
    """A command line of systemd. `:` in front turns off variables, for which `$` would stand."""
    for each in parts:
        if _CONTROL.search(each) or "\n" in each or _UNSAFE.search(parts[0]):
            raise ServiceRefused(f"systemd cannot be given {each!r} in a command; use another directory")
    start = ":" if any("$" in each for each in parts) else ""
    return start + " ".join(_argument(each) for each in parts)


def _argument(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
