"""Every attack in every spelling, at every level and as both users, comes to what the table says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.attacks.attack import LEVELS, USERS, Attack, Case, Level, Spelling, User
from tests.attacks.catalogue import ATTACKS, CASES
from tests.attacks.ground import Ground
from tests.attacks.judges import planted
from tests.attacks.run import measure, measure_without_launcher
from tests.attacks.table import DOCUMENT, table, written
from tests.attacks.workers import WorkerSide
from tests.kit.lacking import require_sandbox
from tests.nightly import sampled

SAMPLE = 20
SAMPLE_IN_CI = 80
CONTROLLED = [case for case in CASES if case.spelling.control and case.level == "off"]


def _program(ground: Ground) -> None:
    ground.put(ground.workspace / "count.py", "open('counted', 'w').write('1')")


HONEST = Attack(
    "honest work",
    planted("made", "d/moved", "counted"),
    (
        Spelling(
            "a step's usual work",
            "set -e; echo a > made; mkdir d; cp made d/x; mv d/x d/moved; echo b > ${TMPDIR:-.}/t; @PY@ count.py; "
            "git --version; ls / > /dev/null; rm count.py",
            prepare=_program,
        ),
    ),
)
"""What no level may prevent: the files that it makes are seen from outside."""
HARMLESS = [case for case in CASES if (case.level, case.user) == ("off", "ordinary")]
WorkerOf = Callable[[User], WorkerSide]


@pytest.mark.parametrize("case", sampled(CASES, SAMPLE, in_ci=SAMPLE_IN_CI), ids=lambda case: case.id)
def test_an_attack_comes_to_what_the_table_says(case: Case, worker_of: WorkerOf) -> None:
    worker = worker_of(case.user)
    require_sandbox(case.level)
    result = measure(case, worker)
    assert result.escaped == case.escapes, (case.outcome, result.said)


@pytest.mark.parametrize("case", sampled(CONTROLLED, 2, in_ci=2), ids=lambda case: case.id)
def test_what_is_held_at_every_level_succeeds_without_the_launcher(case: Case, worker_of: WorkerOf) -> None:
    result = measure_without_launcher(case, worker_of(case.user))
    assert result.escaped, result.said


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_honest_work_gets_done_where_attacks_are_held(level: Level, user: User, worker_of: WorkerOf) -> None:
    worker = worker_of(user)
    require_sandbox(level)
    assert measure(Case(HONEST, HONEST.spellings[0], level, user), worker).escaped


@pytest.mark.parametrize("case", sampled(HARMLESS, 4, in_ci=8), ids=lambda case: case.id)
def test_a_judge_sees_no_escape_where_nothing_is_attacked(case: Case, worker_of: WorkerOf) -> None:
    spelling = replace(case.spelling, command="true", python="", env={}, worker={}, cwd=".")
    result = measure(replace(case, spelling=spelling), worker_of(case.user))
    assert not result.escaped, result.said


def test_every_attack_has_at_least_three_spellings() -> None:
    assert {attack.kind: len(attack.spellings) for attack in ATTACKS if len(attack.spellings) < 3} == {}
    assert len({case.id for case in CASES}) == len(CASES)


def test_every_spelling_has_a_control() -> None:
    """Without a sandbox it succeeds as one of the users, or it has a control of its own."""
    proven = {(case.attack.kind, case.spelling.name) for case in CASES if case.level == "off"}
    proven -= {
        (case.attack.kind, case.spelling.name)
        for case in CASES
        if case.level == "off" and (case.outcome == "succeeds" or case.spelling.control)
    }
    assert proven == set()


def test_nothing_escapes_at_level_2_and_at_level_1_only_what_is_named() -> None:
    assert {case.id for case in CASES if case.level == "bwrap" and case.outcome != "held"} == set()
    assert {case.id for case in CASES if case.level == "landlock" and case.outcome == "succeeds"} == set()


def test_the_document_has_the_table_as_the_data_has_it() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert written(text) == text, "run `python -m scripts.attack_table` as root"


def test_a_changed_cell_is_seen_and_a_document_without_markers_refused() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    row = next(line for line in table().splitlines() if line.startswith("| set-user-id"))
    assert written(text.replace(row, row.replace("held", "succeeds", 1))) == text
    with pytest.raises(ValueError, match="attacks: begin"):
        written("# Security\n")
