"""A small OpenID Connect issuer, over real HTTP: it logs in whoever asks, and can be told to lie.

It keeps to OpenID Connect Core 1.0 where it is not told otherwise: codes work once, PKCE is checked, tokens are signed
with a key that it publishes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from plansurvive.runtime.server import HOST
from tests.apps.web.access.serving import on_socket

CLIENT, SECRET = "plans-page", "client secret"
Claims = dict[str, Any]


@cache
def _key(id: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": id, "use": "sig", "alg": "RS256"})


@dataclass
class Issuer:
    """The issuer, and how it lies. `claims`: added to what it says of a person."""

    url: str
    claims: Claims = field(default_factory=lambda: {"email": "ann@example.org", "email_verified": True})
    change: Callable[[Claims], Claims] = lambda claims: claims
    """What becomes of all claims before they are signed."""
    sign: Callable[[Issuer, Claims], str] | None = None
    """How a token is made, if not as it should be."""
    metadata: Claims = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: _key("one"))
    begun: dict[str, dict[str, str]] = field(default_factory=dict)
    """By code, what the login was asked for."""
    asked_for_keys: int = 0
    secrets_seen: list[str] = field(default_factory=list)

    def token(self, claims: Claims) -> str:
        """A token of these claims, signed as it should be."""
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    def rotate(self) -> None:
        """Another key."""
        self.key = _key("two")

    def code_for(self, asked: dict[str, str]) -> str:
        """The code of a login: for `state` and `nonce` of an authorization request."""
        code = secrets.token_urlsafe(16)
        self.begun[code] = asked
        return code

    async def about(self, _request: Request) -> Response:
        """Discovery."""
        found = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        }
        return JSONResponse(found | self.metadata)

    async def keys(self, _request: Request) -> Response:
        """The public keys."""
        self.asked_for_keys += 1
        return JSONResponse(KeySet([self.key]).as_dict(private=False))

    async def authorize(self, request: Request) -> Response:
        """Log in whoever asks, and send them back."""
        asked = dict(request.query_params)
        back = {"code": self.code_for(asked), "state": asked["state"]}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}", 303)

    async def exchange(self, request: Request) -> Response:
        """A token for a code: once, with its verifier, for the client."""
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.secrets_seen.append(base64.b64decode(request.headers.get("authorization", "")[6:]).decode())
        asked = self.begun.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if asked is None or challenge.rstrip(b"=").decode() != asked["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims: Claims = {
            "iss": self.url, "sub": "123", "aud": asked["client_id"], "iat": now, "exp": now + 300,
            "nonce": asked["nonce"], **self.claims,
        }  # fmt: skip
        claims = self.change(claims)
        token = self.sign(self, claims) if self.sign else self.token(claims)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": token})


def unsigned(_issuer: Issuer, claims: Claims) -> str:
    """A token with the algorithm `none`."""
    return jwt.encode({"alg": "none"}, claims, OctKey.generate_key(), algorithms=["none"])


def by_another_key(issuer: Issuer, claims: Claims) -> str:
    """A token that somebody else signed, under the id of the issuer's key."""
    return jwt.encode({"alg": "RS256", "kid": issuer.key.kid}, claims, _key("forged"))


def by_another_kind_of_key(issuer: Issuer, claims: Claims) -> str:
    """As above, by an elliptic curve."""
    return jwt.encode({"alg": "ES256", "kid": issuer.key.kid}, claims, ECKey.generate_key("P-256"))


def by_public_key(issuer: Issuer, claims: Claims) -> str:
    """A token signed by HMAC with the issuer's public key as if it were a secret (RFC 8725, 2.1)."""
    return _by_hmac(issuer, claims, issuer.key.as_pem(private=False))


def by_client_secret(issuer: Issuer, claims: Claims) -> str:
    """A token signed by HMAC with the client's secret."""
    return _by_hmac(issuer, claims, SECRET.encode())


def _by_hmac(issuer: Issuer, claims: Claims, secret: bytes) -> str:
    parts = [json.dumps(each).encode() for each in ({"alg": "HS256", "kid": issuer.key.kid}, claims)]
    text = b".".join(_encoded(each) for each in parts)
    return (text + b"." + _encoded(hmac.digest(secret, text, "sha256"))).decode()


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@asynccontextmanager
async def serving(**given: Any) -> AsyncIterator[Issuer]:
    """An issuer that answers on 127.0.0.1."""
    with socket.create_server((HOST, 0)) as listening:
        issuer = Issuer(f"http://{HOST}:{listening.getsockname()[1]}", **given)
        app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", issuer.about),
                Route("/keys", issuer.keys),
                Route("/authorize", issuer.authorize),
                Route("/token", issuer.exchange, methods=["POST"]),
            ]
        )
        async with on_socket(app, listening):
            yield issuer
