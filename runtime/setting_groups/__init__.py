"""Settings of the core and the apps by area: `runtime.settings.Settings` inherits the fields of every group.

Each file holds the fields of one area with their checks. May import `plans` only.
"""
