"""Workers of attacks: one for each user, for all tests of a process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.attacks.attack import User
from tests.attacks.workers import WorkerSide, worker_side
from tests.kit.lacking import NOT_ROOT, end


@pytest.fixture(scope="session")
def worker_of() -> Iterator[Callable[[User], WorkerSide]]:
    """Gives the worker of a user, started when it is first asked for."""
    if not shutil.which("gcc"):
        end("gcc", "there is no C compiler for the library that attacks load", os.environ)
    started: dict[User, WorkerSide] = {}
    with ExitStack() as stack:

        def give(user: User) -> WorkerSide:
            if user == "root" and os.geteuid() != 0:
                pytest.skip(f"{NOT_ROOT}: there is no root worker to try")
            if user not in started:
                started[user] = stack.enter_context(worker_side(user))
            return started[user]

        yield give
