"""The command line `plan`. Its libraries are in the extra `cli`, so that workers and scripts can do without them.

This module imports none of them: if any are missing, `plan` names them and says what to install.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec

NEEDED = ("typer", "rich", "textual", "starlette", "uvicorn", "jinja2", "watchfiles")
"""Import names of the libraries in the extra `cli`."""


def main() -> None:
    """Run `plan`; if libraries are missing, name them on standard error and exit with 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the libraries take a second to load
    try:
        run = _loaded()
    except KeyboardInterrupt:
        os._exit(130)
    run()


def _loaded() -> Callable[[], None]:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.stderr.write(f"plan needs {', '.join(missing)}; install them: pip install 'plansurvive[cli]'\n")
        sys.exit(2)
    from plansurvive.client.cli.app import main as run

    return run
