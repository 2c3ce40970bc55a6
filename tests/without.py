"""Runs tests in a copy of this tree without some features: in that copy FEATURES does not list them.

    python -m tests.without waiting cache -- tests/workflows -n 2
    python -m tests.without all -- tests/workflows -n 2

Tests that use a feature which is not there are left out (`tests.conftest`): those below tests/features/NAME, and those
marked `uses("NAME")`. All others are of the core, and pass: what fails shows code of the core that needs a feature.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from plansurvive.features import FEATURES
from tests.kit.trees import UNFINISHED

ROOT = Path(__file__).resolve().parent.parent
_LEFT = shutil.ignore_patterns(UNFINISHED, ".git", ".venv", ".*_cache", "build", "dist", ".hypothesis")


def copy_without(names: Collection[str], root: Path) -> None:
    """Copy the tree to a directory, with features that are not listed. Raises ValueError if one is unknown."""
    if unknown := set(names) - set(FEATURES):
        raise ValueError(f"no features: {', '.join(sorted(unknown))}")
    shutil.copytree(ROOT, root, symlinks=True, ignore=_LEFT, dirs_exist_ok=True)
    place = root / "features" / "__init__.py"
    lines = place.read_text(encoding="utf-8").splitlines(keepends=True)
    [listed] = [
        node
        for node in ast.parse("".join(lines)).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "FEATURES"
    ]
    first, last = listed.lineno, listed.end_lineno or listed.lineno
    kept = tuple(name for name in FEATURES if name not in names)
    lines[first - 1 : last] = [f"FEATURES: tuple[str, ...] = {kept}\n"]
    place.write_text("".join(lines), encoding="utf-8")


def run_tests(root: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run pytest in such a copy; what it prints is in the result."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    environ = {**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=root, env=environ, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def main(arguments: list[str]) -> int:
    """Run the tests; returns the exit code of pytest."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    names, given = arguments[:at], arguments[at + 1 :]
    with tempfile.TemporaryDirectory() as directory:
        copy_without(FEATURES if names == ["all"] else names, Path(directory))
        done = run_tests(Path(directory), given)
    print(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
