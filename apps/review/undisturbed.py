"""Keys whose action runs to its end: a second press while it is under way does nothing.

Textual's exclusive workers cancel the first one instead. A decision that is on its way to the plan would then take
effect without anybody being told, and the second press might decide about the call as it was before.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

from textual import work
from textual.app import App

_UNDER_WAY: WeakKeyDictionary[App[Any], set[str]] = WeakKeyDictionary()
"""By app, the groups of which an action is under way."""
_Action = Callable[..., Coroutine[None, None, None]]


def undisturbed(group: str, busy: str = "") -> Callable[[_Action], Callable[..., Any]]:
    """Run an action of an app as a worker, one of the group at a time. `busy`: what to say to a press meanwhile."""

    def wrapped(action: _Action) -> Callable[..., Any]:
        @wraps(action)
        async def alone(app: Any, *arguments: Any) -> None:
            under_way = _UNDER_WAY.setdefault(app, set())
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
