"""Where http_request may connect to: which addresses are public, what PLANS_HTTP_ALLOW opens, and connections that go
to the address that was checked and to no other.
"""
