"""Garbage collection at set times: the workflow that a schedule starts."""
