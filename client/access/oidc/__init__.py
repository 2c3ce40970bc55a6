"""Login with OpenID Connect: the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636, RFC 9700).

`provider.py` speaks to the issuer and judges its tokens; `login.py` is the way to log in. May import what is in
`client.access`, and `runtime`.
"""
