"""A night in small: one round of random plans under a storm, and every control, as processes of their own."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.night.controls import CONTROLS
from tests.chaos.night.disk import namespace
from tests.chaos.night.new_code import MODULE, ROOT, changed
from tests.chaos.night.plans import planned

SECONDS = 420.0


def night(folder: Path, *arguments: str) -> str:
    """Run one; returns what it printed. Fails unless it ends well."""
    command = [sys.executable, "-m", "tests.chaos.night", "--keep", str(folder), *arguments]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_round_of_random_plans_under_random_faults_loses_and_doubles_nothing(tmp_path: Path) -> None:
    seed = str(random.SystemRandom().randrange(10**6))
    print(f"seed {seed}")
    assert '"lost": 0' in night(tmp_path, "--minutes", "1", "--rounds", "1", "--seed", seed)


@pytest.mark.slow
@pytest.mark.parametrize("without", [False, True], ids=["with it", "without it"])
@pytest.mark.parametrize("control", CONTROLS)
def test_what_a_defence_prevents_is_found_without_it_and_only_then(
    tmp_path: Path, control: str, *, without: bool
) -> None:
    if CONTROLS[control].needs_disk and not namespace():
        pytest.skip("no mount namespace can be had here")
    said = night(tmp_path, "--control", control, "--without" if without else "--no-without")
    assert "as it must be" in said


def test_a_seed_makes_the_same_plans_again(tmp_path: Path) -> None:
    first, second = (planned(7, 3, tmp_path / name) for name in ("a", "b"))
    assert first == second
    assert planned(8, 3, tmp_path / "c") != first


def test_new_code_is_behind_a_patch_unless_that_is_what_is_tried() -> None:
    source = (ROOT / MODULE).read_text()
    assert 'if workflow.patched("chaos"):' in changed(source, is_patched=True)
    without = changed(source, is_patched=False)
    assert ('workflow.patched("chaos")' in without, "of the new code" in without) == (False, True)
