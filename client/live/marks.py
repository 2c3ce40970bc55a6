"""Marks and colours of steps in a terminal: the live board, its plain lines, the review screen. Pure."""

from __future__ import annotations

from plansurvive.plans.step_state import DENIALS

ASKING = ("?", "bold yellow")
MARKS = {
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "running": ("▸", "cyan"),
    "skipped": ("–", "dim"),
    **dict.fromkeys(DENIALS.values(), ("–", "yellow")),
    "waiting": ASKING,
    "ready": ("·", ""),
    "blocked": ("·", "dim"),
    "pending": ("·", "dim"),
}
"""Mark and style of each `Row.sign`."""
