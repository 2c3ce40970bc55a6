"""Files of the operator, in the state directory or where a setting says: TOML, read with bounds, refused with reasons.

May import runtime.settings.
"""
