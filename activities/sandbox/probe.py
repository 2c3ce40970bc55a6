"""Finds out whether the processes of commands are traced on this machine, by running one."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from plansurvive.activities.sandbox.process import tried
from plansurvive.activities.sandbox.sandbox import PROBE_SECONDS, Sandbox
from plansurvive.activities.tracing.trace import read
from plansurvive.plans.errors import ToolError


def is_traced(sandbox: Sandbox) -> bool:
    """Whether a command at this sandbox's level has a whole trace with the file that it wrote."""
    with tempfile.TemporaryDirectory(prefix="plans-probe-") as place:
        top = os.path.realpath(place)
        workspace, trace = os.path.join(top, "workspace"), os.path.join(top, "trace")
        os.mkdir(workspace)
        try:
            order = Sandbox(sandbox.level, state=Path(top, "state")).confine(
                ["/bin/sh", "-c", ": > written"], workspace, workspace, (), {}
            )
            tried(replace(order, trace=trace), PROBE_SECONDS)
        except (OSError, ToolError, subprocess.TimeoutExpired):
            return False
        found = read(Path(trace))
        return found.is_whole and found.has("written")
