"""The key ring (PLANS_KEYS): reading it, noticing changes, encrypting payloads and what is stored with it.

Keys are named by ids that contain their fingerprint. May import `plans` and `runtime` modules without connections.
"""
