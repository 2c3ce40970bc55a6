"""`plan`, which is also `python -m client`.

The command line's libraries are an extra, so that a worker or a script is installed without them: this module imports
none of them before it knows that they are there.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

NEEDED = ("typer", "rich", "textual", "textual_serve", "aiohttp", "watchfiles")
"""The extra `cli`, by the names its libraries are imported by."""


def main() -> None:
    """Run `plan`, or say in one line what to install."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(f"plan needs {', '.join(missing)}: pip install 'plans-that-survive[cli]'")
    from client.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
