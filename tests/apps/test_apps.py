"""Apps are found as far as they are installed: the base works without any of them, and says what to install.

Each app is left out in turn, in a copy of the tree.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.worker import Worker

from plansurvive.apps import COMMANDS, EXTRAS
from plansurvive.client.apps import Command, commands_of_apps, part
from plansurvive.client.errors import AppMissing
from tests.client.cli.command import plan_process
from tests.kit.trees import copy_code
from tests.nightly import sampled
from tests.test_one_name import LINKED, ROOT

PLAN = "steps: [{id: write, tool: write_file, args: {path: a.txt, content: without}}]"
OTHERS = """
[plans.commands]
greet = greeting:COMMAND
"""
GREETING = """
COMMAND = ("greeting:greet", "Greet somebody.")

def greet(name: str) -> None:
    '''Greet somebody.'''
    print(f"Hello, {name}.")
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree, to be changed."""
    root = tmp_path_factory.mktemp("tree")
    copy_code(("plansurvive", *LINKED), root)
    return root


@pytest.fixture(params=["all", *sampled(EXTRAS, 1)])
def left_out(copied: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """An app that is not there while the test runs, or all of them."""
    name = str(request.param)
    folder = copied / "apps" if name == "all" else copied / "apps" / name
    folder.rename(copied / "away")
    yield name
    (copied / "away").rename(folder)


async def test_the_base_works_without_an_app(
    left_out: str, copied: Path, environ: dict[str, str], worker: Worker, workspace: Path, tmp_path: Path
) -> None:
    del worker
    activated = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = environ | {"PYTHONPATH": str(copied), "PLANS_AUTO_WORKER": "off", "COLUMNS": "100", "PATH": activated}
    (tmp_path / "plan.yaml").write_text(PLAN)
    ran = await plan_process(environ, "run", str(tmp_path / "plan.yaml"), cwd=tmp_path)
    assert ran.code == 0, ran.err
    assert (workspace / "a.txt").read_text() == "without"
    listed = (await plan_process(environ, "--help", cwd=tmp_path)).out
    assert "Start a plan and follow it to its end." in listed
    lacking = [name for name, (place, _) in COMMANDS.items() if place.partition(".")[0] == left_out]
    assert len(re.findall(r"Not installed: pip install '?plansurvive", listed)) == len(lacking)
    for name in lacking:
        called = await plan_process(environ, name, cwd=tmp_path)
        assert called.code == 2
        assert re.search(rf"APP_MISSING: `plan {name}` is not installed; run: pip install '?plansurvive", called.err)


def test_a_command_without_its_libraries_says_which_extra_to_install() -> None:
    missing = Command("a:b", "A.", "plansurvive[web]", ("json", "no_such_library")).missing
    assert missing.endswith("pip install 'plansurvive[web]'")
    assert not Command("a:b", "A.", "plansurvive[web]", ("json",)).missing


def test_all_our_apps_are_here_and_each_has_a_folder() -> None:
    assert not [name for name, command in commands_of_apps().items() if command.missing]
    assert {path.parent.name for path in (ROOT / "apps").glob("*/__init__.py")} == set(EXTRAS)
    assert {place.partition(".")[0] for place, _ in COMMANDS.values()} <= set(EXTRAS)


def test_a_part_of_an_app_is_asked_for_by_name() -> None:
    assert part("importers", "commands").__name__ == "plansurvive.apps.importers.commands"
    with pytest.raises(KeyError):
        part("nothing", "commands")


def test_a_part_of_an_app_that_is_not_there_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "importers", ("more", ("no_such_library",)))
    with pytest.raises(AppMissing, match=r"'importers' is not installed; run: .*pip install 'plansurvive\[more\]'"):
        part("importers", "commands")


async def test_another_distribution_adds_a_command_by_an_entry_point(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "greeting-1.dist-info").mkdir()
    (tmp_path / "greeting-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1\n")
    (tmp_path / "greeting-1.dist-info" / "entry_points.txt").write_text(OTHERS)
    (tmp_path / "greeting.py").write_text(GREETING)
    environ = environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    assert (await plan_process(environ, "greet", "Ann", cwd=tmp_path)).out == "Hello, Ann.\n"
    assert "Greet somebody." in (await plan_process(environ, "greet", "--help", cwd=tmp_path)).out
    assert (await plan_process(environ, "greets", cwd=tmp_path)).code == 2, "the control"
