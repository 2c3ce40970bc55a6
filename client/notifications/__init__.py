"""The targets of notifications as this machine's settings name them, and a test message to one.

May import what `client` may.
"""
