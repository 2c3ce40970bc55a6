"""Rates and concurrency as the operator writes them in `limits.toml`.

Data and checks only. May import `plans` and `runtime`.
"""
