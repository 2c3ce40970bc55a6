"""Commands for plans that come from elsewhere than a plan file: `plan template ...` and `plan import`.

May import `client.cli` and `client`.
"""
