"""`python -m plansurvive.apps.web`: the page alone, for a container.

Settings come from the environment; no library of the command line is needed.

It starts neither a server nor a worker, and says so on the page while there is none.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback

from plansurvive.apps.web.serve import serve
from plansurvive.client.access import Access
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import safe
from plansurvive.runtime.settings import Settings, said


def _ready(access: Access) -> None:
    sys.stdout.write(f"Serving {access.link()}\n")
    sys.stdout.flush()


async def _main() -> None:
    running = asyncio.ensure_future(serve(Settings.read(os.environ), os.environ, "operator", _ready))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    await asyncio.gather(running, return_exceptions=True)
    if not running.cancelled() and (error := running.exception()):
        raise error


def _run() -> int:
    try:
        asyncio.run(_main())
    except PlanError as error:
        sys.stderr.write(safe(said(error)) + "\n")
        return 1
    except KeyboardInterrupt:  # before it listens to signals
        return 130
    except Exception:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    code = _run()
    sys.stdout.flush()
    os._exit(code)  # without interpreter teardown, which can crash the SDK's threads
