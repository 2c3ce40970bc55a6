"""Rates and concurrency of tools, task queues and the LLM, as `limits.toml` has them: docs/limits.md."""

REACHES_OUT = True
READS = {"limits.toml": ("PLANS_LIMITS", "limits_file:read_limits")}
COMMANDS = {"limits": ("commands:limits", "Show rates and concurrency: what is used, and who waits.")}
LISTED = {"limits": ("Look", "quotas")}
