"""Traces, metrics and logs of workers, all off by default: docs/telemetry.md.

Nothing here runs, and no library of OpenTelemetry is imported, unless the settings ask for it. Spans have ids that
follow from the plan alone, so that telling them again changes nothing.
"""

REACHES_OUT = True
COMMANDS: dict[str, tuple[str, str]] = {}
