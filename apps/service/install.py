"""Installs `plan up` as a service of this user: systemd on Linux, launchd on macOS. Plans continue after a restart.

Opt-in. The service runs this interpreter and this code with the variables that concern plans as they are at the time;
they go into a file of mode 0600 in the state directory, since keys may be among them. One service per user.

Variables are in a file of mode 600, as units may be read by others; a unit without keys works until the first request.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plansurvive.apps.service.unit import (
    LABEL,
    ServiceRefused,
    Unit,
    launchd_text,
    systemd_text,
    variables_of,
    variables_text,
)
from plansurvive.runtime import up
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.base.code_place import IMPORTED_FROM
from plansurvive.runtime.private_files import make_private
from plansurvive.runtime.settings import Settings

SYSTEMD = "plans.service"
VARIABLES = "service.env"
SECONDS = 60.0
"""Timeout of `systemctl` and `launchctl`; stopping the service takes the grace of its steps."""
PASSED_ON = re.compile(r"PATH|LANG|LC_ALL|TZ|SSL_CERT_(FILE|DIR)|OPENAI_(API_KEY|BASE_URL)|(?i:https?_proxy|no_proxy)")
"""Variables besides PLANS_*, TEMPORAL_* and, for storage in S3, AWS_*. PATH: commands of steps are found there."""


@dataclass(frozen=True)
class State:
    """What `plan doctor` says about the service."""

    is_good: bool
    text: str


class Service:
    """The user service of these settings. `platform`: as `sys.platform`."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], platform: str = sys.platform) -> None:
        self._settings, self._environ = settings, environ
        self.kind: Literal["systemd", "launchd"] = "launchd" if platform == "darwin" else "systemd"
        home = Path(environ.get("HOME") or Path.home())
        config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        self.path = config / "systemd/user" / SYSTEMD
        if self.kind == "launchd":
            self.path = home / "Library/LaunchAgents" / f"{LABEL}.plist"
        self.variables = settings.state_dir / VARIABLES

    def text(self) -> str:
        """The unit or property list. Raises ServiceRefused if it cannot be written down."""
        command = [sys.executable, "-m", "plansurvive", "up"]
        log = self._settings.state_dir / "up.log"
        unit = Unit(command, IMPORTED_FROM, self.variables, log, self._settings.grace)
        return systemd_text(unit) if self.kind == "systemd" else launchd_text(unit)

    def given(self) -> dict[str, str]:
        """The service's variables: those of this command that concern plans, with absolute paths."""
        own = self._settings.as_environ()
        prefixes = ("PLANS_", "TEMPORAL_", *(("AWS_",) if self._settings.storage != "local" else ()))
        found = {
            name: own.get(name, text) if name.startswith("PLANS_") else text
            for name, text in self._environ.items()
            if name.startswith(prefixes) or PASSED_ON.fullmatch(name)
        }
        for name in (name for name in found if name.startswith("TEMPORAL_") and name.endswith(("FILE", "PATH"))):
            found[name] = str(Path(found[name]).absolute())
        return found | {name: own[name] for name in ("PLANS_STATE_DIR", "PLANS_CACHE_DIR")}

    def install(self) -> str:
        """Write the service, start it now and at every login; returns what to know about it. Raises ServiceRefused."""
        text, variables = self.text(), variables_text(self.given())
        present = self._present()
        if present and not self._is_ours(present):
            raise ServiceRefused(
                f"{self.path} runs plans of another state directory; remove it first, with `plan up --uninstall`"
            )
        self._require_manager()
        self._settings.make_state_dir()
        make_private(self._settings.state_dir, "PLANS_STATE_DIR")
        write_whole(self.variables, variables.encode())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, text.encode())
        if self.kind == "launchd":
            self._call("launchctl", "bootout", self._target(), may_fail=True)
            self._call("launchctl", "bootstrap", f"gui/{os.getuid()}", str(self.path))
            return f"Installed and started: {self.path}\n  log    {self._settings.state_dir / 'up.log'}"
        self._call("systemctl", "--user", "daemon-reload")
        self._call("systemctl", "--user", "enable", SYSTEMD)
        self._call("systemctl", "--user", "restart", SYSTEMD)
        return "\n".join([
            f"Installed and started: {self.path}",
            f"  state  systemctl --user status {SYSTEMD}",
            f"  log    journalctl --user --unit {SYSTEMD}",
            *self._lingering(),
        ])  # fmt: skip

    def uninstall(self) -> str:
        """Stop the service and remove it. The server's data stays. Raises ServiceRefused."""
        present = self._present()
        if not present:
            return f"Nothing was installed: there is no {self.path}"
        if not self._is_ours(present):
            raise ServiceRefused(f"{self.path} is that of another state directory; set PLANS_STATE_DIR to that one")
        if self.kind == "launchd":
            self._call("launchctl", "bootout", self._target(), may_fail=True)
        elif self._manager_problem() is None:
            self._call("systemctl", "--user", "disable", "--now", SYSTEMD, may_fail=True)
        with suppress(OSError):  # what `disable` removes, where no systemd runs that could
            (self.path.parent / "default.target.wants" / SYSTEMD).unlink()
        self.path.unlink()
        self.variables.unlink(missing_ok=True)
        if self.kind == "systemd" and self._manager_problem() is None:
            self._call("systemctl", "--user", "daemon-reload")
        return f"Removed {self.path}; the data of plans stays in {self._settings.state_dir}"

    def state(self) -> State:
        """Whether it is installed as it would be now, enabled, and running this code. Starts and changes nothing."""
        present = self._present()
        if not present or not self._is_ours(present):
            return State(True, "not installed; with `plan up --install` plans continue when this machine has restarted")
        problem = self._running_problem()
        if problem is None and (present != self.text() or not self.variables.is_file()):
            problem = f"{self.path} is of another version or interpreter; `plan up --install` renews it"
        return State(False, problem) if problem else State(True, f"{self.path} is enabled, and runs this code")

    def _running_problem(self) -> str | None:
        manager = self._manager_problem()
        if manager:
            return f"{self.path} is installed, but {manager}"
        if self.kind == "systemd" and self._output("systemctl", "--user", "is-enabled", SYSTEMD) != "enabled":
            return f"{self.path} is not enabled; run `systemctl --user enable --now {SYSTEMD}`"
        running = up.recorded(self._settings)
        start = f"systemctl --user restart {SYSTEMD}"
        if self.kind == "launchd":
            start = f"launchctl kickstart -k {self._target()}"
        if running is None:
            return f"{self.path} is installed, but not running; run `{start}`"
        if not running.runs_todays_code(self._settings):
            return f"the service runs another version of this code; run `{start}`"
        return None

    def _present(self) -> str | None:
        try:
            return self.path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def _is_ours(self, present: str) -> bool:
        """Whether an installed service is that of this state directory."""
        return variables_of(present) == str(self.variables)

    def _require_manager(self) -> None:
        problem = self._manager_problem()
        if problem:
            raise ServiceRefused(f"no service was installed: {problem}")

    def _manager_problem(self) -> str | None:
        """Why services of this user cannot be managed, and what to do; None if they can."""
        program = "systemctl" if self.kind == "systemd" else "launchctl"
        if shutil.which(program, path=self._environ.get("PATH")) is None:
            return f"there is no `{program}` here; let whatever starts programs on this machine run `plan up`"
        if self.kind == "launchd" or self._run("systemctl", "--user", "show-environment").returncode == 0:
            return None
        return (
            "systemd does not run for this user. In a container, let the container run `plan up` and restart it; "
            "over SSH or `su`, log in as the user, or run `sudo loginctl enable-linger $USER` and log in again. "
            "`plan up --print` shows the unit"
        )

    def _lingering(self) -> list[str]:
        user = getpass.getuser()
        if self._output("loginctl", "show-user", user, "--property=Linger", "--value") == "yes":
            return ["It starts with the machine."]
        return [f"It starts when you log in. For a start with the machine: sudo loginctl enable-linger {user}"]

    def _target(self) -> str:
        return f"gui/{os.getuid()}/{LABEL}"

    def _call(self, *command: str, may_fail: bool = False) -> None:
        done = self._run(*command)
        if done.returncode != 0 and not may_fail:
            raise ServiceRefused(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")

    def _output(self, *command: str) -> str:
        return self._run(*command).stdout.strip()

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program with this command's variables; exit code 127 if there is none, or it does not end in time."""
        seconds = SECONDS + self._settings.grace
        try:
            return subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, env=dict(self._environ), check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            return subprocess.CompletedProcess(command, 127, "", str(error))
