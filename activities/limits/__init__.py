"""Attempts and LLM requests under the limits of limits.toml: what they claim, and asking whether they may begin.

May import `plans` and `runtime`, and nothing of `activities` but this folder.
"""
