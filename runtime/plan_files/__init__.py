"""Plan files as text: which format one has, and YAML parsed as strictly as JSON.

For client and worker alike. May import `plans` only.
"""
