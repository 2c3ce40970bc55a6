"""Sessions end when they are not used, in any case after some hours, and by logout; guessing is slowed down."""

from __future__ import annotations

from plansurvive.client.access import sessions as module
from plansurvive.client.access.link import FREE, WINDOW, Attempts
from plansurvive.client.access.sessions import Sessions


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_ends_when_it_is_not_used() -> None:
    clock = Clock()
    sessions = Sessions(60, 1_000, clock)
    id = sessions.begin("ann", verified=True)
    for _ in range(3):
        clock.now += 59
        assert sessions.find(id, is_use=True) is not None
    clock.now += 59
    assert sessions.find(id, is_use=False) is not None  # what an open page asks for by itself
    clock.now += 1
    assert sessions.find(id, is_use=True) is None


def test_a_session_ends_after_some_hours_however_much_it_is_used() -> None:
    clock = Clock()
    sessions = Sessions(60, 100, clock)
    id = sessions.begin("ann", verified=True)
    for clock.now in (50, 99):
        assert sessions.find(id, is_use=True) is not None
    clock.now = 100
    assert sessions.find(id, is_use=True) is None


def test_a_session_that_was_ended_stays_so_and_others_go_on() -> None:
    sessions = Sessions(60, 100, Clock())
    first, second = (sessions.begin("ann", verified=True) for _ in range(2))
    sessions.end(first)
    sessions.end("none")
    assert sessions.find(first, is_use=True) is None
    found = sessions.find(second, is_use=True)
    assert found is not None
    assert (found.name, len(found.csrf) >= 32, len(second) >= 32) == ("ann", True, True)


def test_many_logins_do_not_fill_the_memory() -> None:
    clock = Clock()
    sessions = Sessions(1e9, 1e9, clock)
    ids = []
    for clock.now in range(module.MOST + 5):
        ids.append(sessions.begin("ann", verified=True))
    assert [sessions.find(id, is_use=False) is not None for id in (*ids[:6], ids[-1])] == [False] * 5 + [True] * 2


def test_wrong_secrets_of_one_address_are_counted_for_a_minute() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    assert [attempts.failed("a") for _ in range(FREE + 2)] == [False] * FREE + [True] * 2
    assert attempts.failed("b") is False
    clock.now = WINDOW
    assert attempts.failed("a") is False
