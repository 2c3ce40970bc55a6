"""Plans to look at."""

from __future__ import annotations

from tests.apps.web.visiting import start as start
from tests.apps.web.visiting import start_unserved as start_unserved
