"""Plans to look at."""

from __future__ import annotations

from tests.client.web.visiting import start as start
from tests.client.web.visiting import start_unserved as start_unserved
