"""Keys whose action runs to its end: a second press while it is under way does nothing.

Textual's exclusive workers cancel the first one instead. A decision that is on its way to the plan would then take
effect without anybody being told, and the second press might decide about the call as it was before.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from textual import work

_Action = Callable[..., Coroutine[None, None, None]]


def undisturbed(group: str, busy: str = "") -> Callable[[_Action], Callable[..., Any]]:
    """Run an action of an app as a worker, one of the group at a time. `busy`: what to say to a press meanwhile."""

    def wrapped(action: _Action) -> Callable[..., Any]:
        @wraps(action)
        async def alone(app: Any, *arguments: Any) -> None:
            under_way: set[str] = vars(app).setdefault("_actions_under_way", set())
            if group in under_way:
                if busy:
                    app.say(busy)
                return
            under_way.add(group)
            try:
                await action(app, *arguments)
            finally:
                under_way.discard(group)

        return work(alone, group=group)

    return wrapped
