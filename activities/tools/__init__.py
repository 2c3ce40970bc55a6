"""The built-in tools, how a function becomes a tool (`@tool`), and the registry that collects them.

May import `plans`, `runtime` and the other parts of `activities` except `lifecycle`.
"""
