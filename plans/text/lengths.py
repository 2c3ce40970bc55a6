"""How long something takes, as every view writes it."""

from __future__ import annotations


def seconds(length: float) -> str:
    """A length of time, given in seconds: 3 ms, 0.3 s, 12 s, 3:05, 1:02:03."""
    length = max(0.0, length)
    if length < 0.095:
        return f"{1_000 * length:.0f} ms"
    if length < 9.95:
        return f"{length:.1f} s"
    minutes, rest = divmod(round(length), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
