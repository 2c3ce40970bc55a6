"""An OpenID Connect issuer: its addresses by discovery, its keys, and whether a token is good.

Nothing of a token counts before its signature is checked with a key that the issuer publishes, by an asymmetric
algorithm, and the token is for this client, this login (nonce) and this time. TLS is required, except for an issuer on
this machine. Redirects are not followed, and answers are bounded.

Rejected: Authlib's client, which sends code and secret without TLS, takes algorithms from the issuer, reads answers of
any size, and has nothing for access tokens.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.setting_groups.web import is_loopback

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Asymmetric ones: with an HMAC the client secret would sign, and `none` signs nothing."""
TIMEOUT = 10.0
MAX_BYTES = 1_000_000
KNOWN_SECONDS = 3_600.0
"""How long what the issuer says of itself is used; its keys also as long as they fit."""
AGAIN_SECONDS = 10.0
"""Keys are asked for again at most this often when a token names an unknown one."""
LEEWAY = 60
"""Seconds that the clocks of issuer and page may differ."""


class LoginFailed(PlanError):
    """A login that did not end in a person. Code LOGIN_UNAVAILABLE: the issuer does not answer as it should."""

    code = "LOGIN_FAILED"


class Provider:
    """One issuer, as one client of it. `secret`: empty for a public client."""

    def __init__(self, issuer: str, client_id: str, secret: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.issuer, self.client_id = issuer, client_id
        self._secret, self._clock = secret, clock
        self._about: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    async def address(self, name: str) -> str:
        """An address of the issuer, such as `authorization_endpoint`; empty if it has none. Raises LoginFailed."""
        found = (await self._metadata()).get(name, "")
        if not found:
            return ""
        if not isinstance(found, str) or not self._is_safe(found):
            raise LoginFailed(f"The issuer gives an address that is not https for {name}.")
        return found

    async def claims(self, code: str, redirect_uri: str, verifier: str, nonce: str) -> Mapping[str, Any]:
        """The claims about a person, for the code of a login. Raises LoginFailed."""
        token = await self._token(code, redirect_uri, verifier)
        id_token = token.get("id_token")
        if not isinstance(id_token, str):
            raise LoginFailed("The issuer gave no ID token.")
        return await self._checked(id_token, nonce)

    async def _token(self, code: str, redirect_uri: str, verifier: str) -> Mapping[str, Any]:
        """The answer of the token endpoint: RFC 6749, 4.1.3 and 2.3.1, with the verifier of RFC 7636."""
        supported = (await self._metadata()).get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        auth = None
        if self._secret and "client_secret_basic" in supported:
            auth = httpx.BasicAuth(quote_plus(self.client_id), quote_plus(self._secret))
        else:
            form |= {"client_id": self.client_id} | ({"client_secret": self._secret} if self._secret else {})
        status, found = await self._ask("POST", await self.address("token_endpoint"), data=form, auth=auth)
        if status != 200:
            raise LoginFailed(f"The issuer refused the login: {str(found.get('error', status))[:100]}. Log in again.")
        return found

    async def access_claims(self, token: str, audience: str) -> Mapping[str, Any]:
        """The claims of an access token that was made for `audience` (RFC 9068, RFC 8707). Raises LoginFailed.

        An ID token is for the page's client id, and so never for `audience`. A token that is bound to a key (`cnf`,
        RFC 9449) is refused: nothing here could check that its sender holds it.
        """
        found = await self._good(token, aud={"essential": True, "value": audience})
        if str(found.header.get("typ", "JWT")).lower().removeprefix("application/") not in ("jwt", "at+jwt"):
            raise LoginFailed("This is not an access token.")
        if "cnf" in found.claims:
            raise LoginFailed("The token is bound to a key, which this server cannot check.")
        return found.claims

    async def _good(self, text: str, **rules: jwt.ClaimsOption) -> jwt.Token:
        """A token of the issuer, with a good signature, at this time. Raises LoginFailed."""
        try:
            keys, asked = await self._key_set(again=False)
            try:
                token = jwt.decode(text, keys, algorithms=ALGORITHMS)
            except (JoseError, ValueError):
                # The issuer may have changed its keys since they were asked for.
                keys, again = await self._key_set(again=True)
                if again == asked:
                    raise
                token = jwt.decode(text, keys, algorithms=ALGORITHMS)
            jwt.JWTClaimsRegistry(
                now=None,
                leeway=LEEWAY,
                iss={"essential": True, "value": self.issuer},
                sub={"essential": True},
                exp={"essential": True},
                **rules,
            ).validate(token.claims)
        except (JoseError, ValueError) as error:
            raise LoginFailed(f"The issuer's token is not good: {_reason(error)}. Log in again.") from error
        return token

    async def _checked(self, id_token: str, nonce: str) -> Mapping[str, Any]:
        token = await self._good(
            id_token,
            aud={"essential": True, "value": self.client_id},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        audience, party = token.claims["aud"], token.claims.get("azp")
        if (isinstance(audience, list) and len(audience) > 1 and party is None) or party not in (None, self.client_id):
            raise LoginFailed("The issuer's token was given to another client. Log in again.")
        return token.claims

    async def _key_set(self, *, again: bool) -> tuple[KeySet, float]:
        """The issuer's keys, and when they were asked for. `again`: ask, if that was not just done."""
        now = self._clock()
        if self._keys is not None and now - self._keys[0] < (AGAIN_SECONDS if again else KNOWN_SECONDS):
            return self._keys[1], self._keys[0]
        found = await self._get(await self.address("jwks_uri"))
        # A symmetric key that somebody published signs nothing.
        keys = [each for each in found.get("keys", ()) if isinstance(each, dict) and each.get("kty") != "oct"]
        self._keys = now, KeySet.import_key_set({"keys": keys})
        return self._keys[1], now

    async def _metadata(self) -> Mapping[str, Any]:
        now = self._clock()
        if self._about is None or now - self._about[0] >= KNOWN_SECONDS:
            found = await self._get(self.issuer.rstrip("/") + "/.well-known/openid-configuration")
            if found.get("issuer") != self.issuer:
                text = f"The issuer calls itself {str(found.get('issuer'))[:200]!r}, not {self.issuer!r}"
                raise LoginFailed(f"{text}; set PLANS_WEB_OIDC_ISSUER to the first, if you trust it.")
            self._about = now, found
        return self._about[1]

    async def _get(self, address: str) -> Mapping[str, Any]:
        status, found = await self._ask("GET", address)
        if status != 200:
            raise _unavailable(self.issuer, ValueError(f"{address} answers with status {status}"))
        return found

    async def _ask(self, method: str, address: str, **given: Any) -> tuple[int, Mapping[str, Any]]:
        """Status and object of an answer, bounded. Raises LoginFailed."""
        parts, size = [], 0
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False, trust_env=False) as client,
                client.stream(method, address, headers={"Accept": "application/json"}, **given) as answer,
            ):
                async for part in answer.aiter_bytes():
                    size += len(part)
                    if size > MAX_BYTES:
                        raise ValueError("its answer is too large")
                    parts.append(part)
            found = json.loads(b"".join(parts))
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError, RecursionError) as error:
            raise _unavailable(self.issuer, error) from error
        if not isinstance(found, dict):
            raise _unavailable(self.issuer, ValueError("its answer is not an object"))
        return answer.status_code, found

    def _is_safe(self, address: str) -> bool:
        url = urlsplit(address)
        if url.scheme == "https" and url.hostname:
            return True
        both = is_loopback(url.hostname or "") and is_loopback(urlsplit(self.issuer).hostname or "")
        return url.scheme == "http" and both


def _unavailable(issuer: str, error: Exception) -> LoginFailed:
    why = str(error)[:200] or type(error).__name__
    return LoginFailed(f"The issuer {issuer} does not answer as it should: {why}. Try again.", "LOGIN_UNAVAILABLE")


def _reason(error: Exception) -> str:
    return (str(error).rstrip(".") or type(error).__name__)[:200]
