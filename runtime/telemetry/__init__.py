"""Telemetry of a process: how traces are carried and exported, metrics and their endpoint, logs as JSON lines.

Nothing here runs, and no library of OpenTelemetry is imported, unless the settings ask for it.
May import `plans` and `runtime`.
"""
