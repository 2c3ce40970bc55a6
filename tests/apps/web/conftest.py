"""What tests of the web page share."""

from __future__ import annotations

from tests.apps.web.browser import chromium as chromium
