"""What to type so that this installation gets an extra: a line for the program that installed it.

Beside pipx or uv, pip would refuse, or install for another interpreter. Those two replace the environment of a tool
by what their line names, so it names the extras that are there as well. At first this imports of the standard library
only what is there already: `plan --help` asks.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

NAME = "plansurvive"
_OF_AN_EXTRA = re.compile(r"([\w.-]+).*;.*\bextra == ['\"]([\w-]+)['\"]")
_SUMS = {"all", "dev"}


def install_line(wanted: str, environment: Path | None = None) -> str:
    """The command that adds a requirement, such as `plansurvive[web]`, to an environment, by default to ours.

    What `uvx` has run is installed by it for good: a later `uvx` takes the installed one.
    """
    folder = environment or Path(sys.prefix)
    is_ours = wanted.partition("[")[0] == NAME
    named = shlex.quote(wanted)
    # 1. An environment that belongs to pipx or uv.
    if (folder / "pipx_metadata.json").exists():
        return f"pipx install --force {_with_present(wanted)}" if is_ours else f"pipx inject {NAME} {named}"
    if _is_of_uv(folder):
        return f"uv tool install {_with_present(wanted) if is_ours else f'{_with_present(NAME)} --with {named}'}"
    # 2. One that uv made: it has no pip.
    python = folder / "bin" / "python"
    if environment is None and find_spec("pip") is None and shutil.which("uv"):
        return f"uv pip install --python {shlex.quote(str(python))} {named}"
    # 3. Any other; `pip` may be that of another one.
    pip = shutil.which("pip")
    if pip is None or Path(pip).parent.resolve() == python.parent.resolve():
        return f"pip install {named}"
    return f"{shlex.quote(str(python))} -m pip install {named}"


def pytest_lines(arguments: str, environment: Path | None = None) -> list[str]:
    """What to type to run pytest where this program can be imported; the line before, if any, installs pytest there."""
    folder = environment or Path(sys.prefix)
    if _is_of_uv(folder):
        return [f"uv run --no-project --with {_with_present(NAME)} --with pytest python -m pytest {arguments}"]
    own = folder / "bin" / "python" if environment else Path(sys.executable)
    first = shutil.which("python")
    is_first = first is not None and Path(first).parent.resolve() == own.parent.resolve()
    run = f"{'python' if is_first else shlex.quote(str(own))} -m pytest {arguments}"
    return [run] if environment is None and find_spec("pytest") else [install_line("pytest", environment), run]


def _is_of_uv(folder: Path) -> bool:
    """Whether an environment is that of a tool of uv; `uvx` has its own ones."""
    return (folder / "uv-receipt.toml").exists() or folder.parent.name.startswith("archive-v")


def present() -> dict[str, bool]:
    """Each extra, by name, and whether all its libraries are installed; none where we are not installed ourselves."""
    from importlib.metadata import PackageNotFoundError, distribution, requires

    def is_there(name: str) -> bool:
        try:
            distribution(name)
        except PackageNotFoundError:
            return False
        return True

    libraries: dict[str, set[str]] = {}
    for row in (requires(NAME) or []) if is_there(NAME) else []:
        if (found := _OF_AN_EXTRA.match(row)) and found[2] not in _SUMS:
            libraries.setdefault(found[2], set()).add(found[1])
    return {name: all(map(is_there, needed)) for name, needed in sorted(libraries.items())}


def lacking(extra: str) -> str:
    """What to type so that an extra is installed; empty: it is, or its libraries are not known."""
    return "" if present().get(extra, True) else install_line(f"{NAME}[{extra}]")


def _with_present(wanted: str) -> str:
    """A requirement of ours, with the extras whose libraries are installed."""
    extras = {name for name, is_there in present().items() if is_there}
    extras |= set(filter(None, wanted.removeprefix(NAME).strip("[]").split(",")))
    return shlex.quote(f"{NAME}[{','.join(sorted(extras))}]") if extras else NAME
