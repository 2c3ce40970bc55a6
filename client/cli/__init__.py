"""The command line `plan`."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Run `plan`."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the libraries take half a second to load
    try:
        from plansurvive.client.cli.app import main as run
    except KeyboardInterrupt:
        os._exit(130)
    run()
