"""Locates or installs the `temporal` program, as the embedded server does, and prints its path.

The SDK's own download has no checksum, and another version.
"""

from __future__ import annotations

import asyncio
import os
import sys

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal

try:
    print("temporal:", asyncio.run(find_temporal(Settings.read(os.environ), print)))
except PlanError as error:
    sys.exit(f"{error.code}: {error.message}")
