"""Secrets that plans name (secrets.toml): which there are, which tools may use them, and what they are at this moment.

Only workers read values, and only while they make a call. May import `plans` and `runtime` modules without connections.
"""
