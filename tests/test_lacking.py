"""A test that cannot run here is skipped; where .ci/run has installed what it needs, it fails.

A test of the sandbox that is skipped there fails for whatever reason it was skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.lacking import GUARDED, INSTALLED, NOT_ROOT, end, is_refused
from tests.test_imports import ROOT

SKIPPED = """
import pytest

@pytest.mark.skip(reason="by a mark")
def test_marked(): ...

def test_within():
    pytest.skip("within")

@pytest.fixture
def lacking():
    pytest.skip("by a fixture")

def test_set_up(lacking): ...

@pytest.mark.xfail(reason="known")
def test_known():
    assert False

def test_run(): ...
"""


@pytest.mark.parametrize(
    ("what", "environ", "ends"),
    [
        ("bwrap", {"CI": "true"}, pytest.fail.Exception),
        ("gcc", {"CI": "true"}, pytest.fail.Exception),
        ("bwrap", {}, pytest.skip.Exception),
        ("landlock", {"CI": "true"}, pytest.skip.Exception),
    ],
)
def test_what_is_installed_for_ci_may_not_be_missing_there(
    what: str, environ: dict[str, str], ends: type[BaseException]
) -> None:
    with pytest.raises(ends, match="not here"):
        end(what, f"{what} is not here", environ)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "environ", "counted"),
    [
        ("tests/attacks", {"CI": "true"}, {"failed": 1, "error": 3, "passed": 1, "xfailed": 1}),
        ("tests/attacks", {}, {"skipped": 4, "passed": 1, "xfailed": 1}),
        ("tests/client", {"CI": "true"}, {"skipped": 4, "passed": 1, "xfailed": 1}),
    ],
)
def test_a_skipped_test_of_the_sandbox_fails_where_everything_is_installed(
    tmp_path: Path, folder: str, environ: dict[str, str], counted: dict[str, int]
) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / "test_seeded.py").write_text(SKIPPED)
    (place / "test_whole.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.kit.lacking", "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, "--continue-on-collection-errors", f"--rootdir={tmp_path}", str(place)]
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environ}
    ended = subprocess.run(command, env=kept, cwd=tmp_path, capture_output=True, text=True)
    told = {
        word: int(count) for count, word in re.findall(r"(\d+) (failed|passed|skipped|xfailed|error)", ended.stdout)
    }
    assert told == counted, ended.stdout + ended.stderr
    assert bool(ended.returncode) == ("failed" in counted)


def test_the_tests_of_this_tree_are_guarded_so(request: pytest.FixtureRequest) -> None:
    hooks = request.config.hook.pytest_runtest_makereport.get_hookimpls()
    assert "tests.kit.lacking" in {hook.function.__module__ for hook in hooks}
    assert all((ROOT / folder).is_dir() for folder in GUARDED)


def test_only_an_ordinary_user_may_skip_what_needs_root() -> None:
    place = Path("tests/attacks/test_attacks.py")
    assert is_refused(place, NOT_ROOT, {"CI": "true"}) == (os.geteuid() == 0)
    assert is_refused(place, "no bubblewrap", {"CI": "true"})


def test_what_may_not_be_missing_is_installed() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert [program for program in INSTALLED if f"have {program} ||" not in script] == []
