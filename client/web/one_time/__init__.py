"""The page of a one-time link: decides about exactly one call, once, without a login.

`routes.py` has the route `/decide/{token}`; `runtime.links` says which links are good. May import what the other pages
may.
"""
