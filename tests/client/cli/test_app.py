"""What the command line is before any command runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
NEEDED_BY_FEW = {"activities.tools.registry", "httpx", "temporalio.testing", "textual", "watchfiles"}


def loaded(program: str) -> set[str]:
    """Which of those modules are loaded once a process of its own has done this."""
    program += f"\nimport sys; print(*{NEEDED_BY_FEW} & set(sys.modules))"
    command = [sys.executable, "-c", program]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())


def help_of(*arguments: str) -> str:
    environ = {**os.environ, "COLUMNS": "80"}
    command = [sys.executable, "-m", "client", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout


def test_a_command_starts_without_what_only_few_commands_need() -> None:
    assert loaded("import client.cli.app") == set()
    assert loaded("import client.file_watcher, client.review.app, activities.tools.registry, temporalio.testing") == (
        NEEDED_BY_FEW
    )


def test_plan_alone_shows_the_help() -> None:
    assert help_of() == help_of("--help")


def test_every_command_is_described_by_a_sentence_that_fits() -> None:
    _, commands = help_of("--help").split("Commands:\n")
    assert [row for row in commands.splitlines() if not row.endswith(".") or row.endswith("...")] == []
