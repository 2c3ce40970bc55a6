"""Sends CloudEvents to a webhook, signed as Standard Webhooks 1.0 say, so that a receiver knows who sent what, once.

`webhook-id` is the same for all attempts, `webhook-timestamp` that of the attempt, `webhook-signature` one HMAC-SHA256
per key over `id.timestamp.body`. Redirects are not followed: a signed body goes where the operator said.
"""

from __future__ import annotations

import base64
import hmac
import ssl
import time
from collections.abc import Sequence
from functools import cache

import httpx

from plansurvive.features.notify.failures import NotDelivered

MEDIA_TYPE = "application/cloudevents+json; charset=utf-8"
LONGEST_WAIT = 600.0
"""Most seconds that a receiver can ask us to wait with Retry-After."""
_GONE = 410


def signature(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """The signature of a body: `v1,` and the HMAC-SHA256 in base64."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def headers(keys: Sequence[bytes], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt."""
    return {
        "content-type": MEDIA_TYPE,
        "user-agent": "plans-that-survive",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(key, id, timestamp, body) for key in keys),
    }


@cache
def _trust() -> ssl.SSLContext:
    """Whom https trusts. Made once: it takes tens of milliseconds, in which nothing else of the worker runs."""
    return httpx.create_ssl_context()


async def post(url: str, keys: Sequence[bytes], id: str, body: bytes, timeout: float) -> None:
    """Send one attempt. Raises NotDelivered unless the receiver answers with 2xx."""
    if not url.startswith(("http://", "https://")):
        raise NotDelivered("the webhook's URL does not begin with https:// or http://", lasting=True)
    try:
        async with (
            httpx.AsyncClient(timeout=timeout, follow_redirects=False, verify=_trust()) as client,
            client.stream("POST", url, content=body, headers=headers(keys, id, int(time.time()), body)) as answer,
        ):
            status, wait = answer.status_code, answer.headers.get("retry-after", "")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: a host that is no name (IDNA)
        raise NotDelivered(f"the webhook cannot be reached: {type(error).__name__}") from None
    if status == _GONE:
        raise NotDelivered("the webhook answers 410: it takes no more messages", lasting=True)
    if not 200 <= status < 300:
        seconds = min(float(wait), LONGEST_WAIT) if wait.isascii() and wait.isdigit() else None
        raise NotDelivered(f"the webhook answers {status}", wait=seconds)
