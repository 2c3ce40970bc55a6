"""Commands for plans that come from elsewhere than a plan file: `plan template ...`.

May import `client.cli` and `client`.
"""
