"""`make demo`: runs a plan on the embedded server, in a temporary workspace, and prints its result."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

workspace = Path(tempfile.mkdtemp(prefix="plans-demo-"))
plan = [sys.executable, "-m", "plansurvive.client"]
code = subprocess.run([*plan, "run", "examples/first-steps.yaml", "--workspace", str(workspace)], cwd=ROOT).returncode
if code == 0:
    print(f"\n{workspace / 'report.md'} contains:\n{(workspace / 'report.md').read_text()}")
    print("The server keeps running, so that you can inspect the plan; `plan down` stops it.")
sys.exit(code)
