"""Traces as values: the ids of a plan's spans, which follow from the plan alone, and its spans from its record.

Pure, as all of `plans`; `runtime.telemetry` carries and exports them, `activities.telemetry` notices what happens.
May import `plans` only.
"""
