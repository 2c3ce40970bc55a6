"""Audit records where they are read and kept: built from a workflow's history, and stored in the state directory for
the time after the server has deleted that. Imports `plans` and `runtime`.
"""
