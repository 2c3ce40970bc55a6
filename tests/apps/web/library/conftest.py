"""Ann, and plans for her to change."""

from __future__ import annotations

from tests.apps.web.visiting import start as start
from tests.apps.web.visiting import start_unserved as start_unserved
from tests.apps.web.visiting import visitor as visitor
