"""Secrets that plans name: `{{secret.NAME}}` in the arguments of a call. Their values never get here.

Which texts name secrets, what is wrong with them, and which of them a call may have filled in by its worker. May
import `plans.model`, `plans.expressions` and `plans.definition.near_names`.
"""
