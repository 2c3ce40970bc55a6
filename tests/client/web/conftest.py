"""What tests of the web page share."""

from __future__ import annotations

from tests.client.web.browser import chromium as chromium
