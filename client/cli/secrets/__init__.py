"""`plan secrets`: which secrets plans may name, and whether they can be read here.

Imports the rest of `client.cli` and `runtime.secrets`; needs no server.
"""
