"""A process that crashed is told from one that ended, or was ended, in order."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.kit.host import has_crashed


@pytest.mark.parametrize(
    ("command", "crashed"),
    [
        ([sys.executable, "-c", "import os; os.abort()"], True),
        (["sh", "-c", f"{sys.executable} -c 'import os; os.abort()'; exit $?"], True),
        (["sh", "-c", "kill -9 $$"], False),
        (["sh", "-c", "exit 1"], False),
        (["sh", "-c", "exit 130"], False),
    ],
)
def test_an_abort_is_seen_behind_a_shell_too(command: list[str], crashed: bool) -> None:
    done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
    assert has_crashed(done.returncode) is crashed, done.returncode
