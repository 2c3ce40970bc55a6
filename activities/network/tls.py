"""TLS of the requests that tools, tool servers and the LLM's client send."""

from __future__ import annotations

import ssl
from functools import cache

import httpx


@cache
def tls_context() -> ssl.SSLContext:
    """TLS with the CA certificates of httpx, whatever the environment says. Cached, because loading them is slow."""
    return httpx.create_ssl_context(trust_env=False)
