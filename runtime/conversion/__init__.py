"""How values become payloads, and payloads values.

May import `plans` only; `runtime.storage` puts the converter together.
"""
