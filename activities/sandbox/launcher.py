"""The program that runs a command for the worker: `python -I -S launcher.py DESCRIPTOR`. Standard library only.

It is started with a constant environment and reads everything else from DESCRIPTOR, so nothing that a step gives takes
effect outside the sandbox. Isolated mode (-I -S) reads no site files and imports nothing from the working directory.

A threaded worker must not fork with code of its own, and its death must end the whole process tree; trees survived
`start_new_session` and PDEATHSIG.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType


def _find_siblings() -> None:
    """Make our modules here importable without the path of the whole project and without its dependencies."""
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(here)
    packages = {"": [], ".activities": [top], ".activities.sandbox": [here]}
    packages[".activities.tracing"] = [os.path.join(top, "tracing")]
    for name, places in packages.items():
        package = ModuleType(f"plansurvive{name}")
        package.__path__ = places
        sys.modules[package.__name__] = package


if __name__ == "__main__":
    _find_siblings()
    from plansurvive.activities.sandbox.supervisor import main

    sys.exit(main(int(sys.argv[1])))
