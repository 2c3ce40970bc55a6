"""The command line `plan`. Its libraries are the extra `cli`, so that workers and scripts are installed without them.

This module imports none of them: where they are missing, `plan` says what to install.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

NEEDED = ("typer", "rich", "textual", "textual_serve", "aiohttp", "aiohttp_jinja2", "jinja2", "watchfiles")
"""The libraries of the extra, by the names they are imported by."""


def main() -> None:
    """Run `plan`, or say in one line what to install."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.stderr.write(f"plan needs {', '.join(missing)}: pip install 'plans-that-survive[cli]'\n")
        sys.exit(2)
    from client.cli.app import main as run

    run()
