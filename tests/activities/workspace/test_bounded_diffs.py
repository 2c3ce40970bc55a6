"""Texts that take `difflib` minutes are compared with bounded work, and the diff is still right."""

from __future__ import annotations

import difflib
import random
import subprocess
from pathlib import Path

import pytest

from plansurvive.activities.tools.text_edit import find_edit
from plansurvive.activities.workspace.text_diff import BoundedMatcher, diff_lines, unified_diff
from plansurvive.plans.errors import ToolError
from tests.kit.growth import cpu

COUNT = 1_500


def interleaved() -> tuple[str, str]:
    """Every second line differs: each match that difflib finds is one line long."""
    lines = [f"{n}\n" for n in range(COUNT)]
    return "".join(lines), "".join(f"{line}x{line}" for line in lines)


def repeated() -> tuple[str, str]:
    """Few different lines, each just too rare to be ignored."""
    chosen, lines = random.Random(1), [f"{n}\n" for n in range(190)]
    one, other = ("".join(chosen.choice(lines) for _ in range(COUNT * 5)) for _ in range(2))
    return f"first\n{one}last\n", f"first\n{other}last\n"


HOSTILE = {"interleaved": interleaved, "repeated": repeated}


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("name", HOSTILE)
def test_a_costly_diff_ends_and_is_right(tmp_path: Path, name: str) -> None:
    before, after = HOSTILE[name]()
    (tmp_path / "x").write_text(before)
    diff = unified_diff("x", before, after)
    subprocess.run(["git", "apply", "-p1"], cwd=tmp_path, input=diff.encode(), check=True)
    assert (tmp_path / "x").read_text() == after
    assert " first\n" in diff or name == "interleaved"


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_matcher_looks_at_no_more_pairs_than_it_may(name: str) -> None:
    before, after = (text.splitlines() for text in HOSTILE[name]())
    free, bounded = BoundedMatcher(before, after, 10**12), BoundedMatcher(before, after, 100_000)
    bounded.get_opcodes()
    if name == "interleaved":  # the other takes minutes
        free.get_opcodes()
        assert 10**12 - free.left > 20 * 100_000  # control
        assert cpu(lambda: BoundedMatcher(before, after, 100_000).ratio()) * 3 < cpu(
            lambda: BoundedMatcher(before, after, 10**12).ratio()
        )
    assert bounded.left < 0


@pytest.mark.parametrize("seed", range(20))
def test_a_usual_diff_is_that_of_difflib(seed: int) -> None:
    chosen = random.Random(seed)
    before = [f"{chosen.randrange(30)}\n" for _ in range(chosen.randrange(60))]
    after = [line for line in before if chosen.random() < 0.8] + [f"{chosen.randrange(30)}\n"]
    expected = list(difflib.unified_diff(before, after, "a", "b", n=seed % 4))[2:]
    assert list(diff_lines(before, after, seed % 4)) == expected


@pytest.mark.slow
@pytest.mark.in_turn
def test_the_nearest_lines_of_many_similar_ones_are_found_with_bounded_work() -> None:
    chosen = random.Random(2)
    rows = ["".join(chosen.sample("abcdefghijklmnopqrstuvwxyz" * 7, 180)) for _ in range(3_000)]
    wanted = "".join(chosen.sample(rows[0], 180))
    text = "\n".join(rows)
    assert cpu(lambda: _no_match(text, wanted)) < 100 * cpu(lambda: [set(row) for row in rows for _ in range(3)])


def _no_match(text: str, wanted: str) -> None:
    with pytest.raises(ToolError):
        find_edit("x", text, wanted, "new")
