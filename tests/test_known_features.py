"""The table of what the tree knows of each feature sees what there is to see, and today's tree keeps the rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.known_features import known, main
from tests.test_imports import ROOT

LOCKS = {
    "features/locks/__init__": "COMMANDS = {}",
    "features/locks/settings": "class LockSettings(FeatureSettings):\n    feature = 'locks'\n    lock_days: int = 1",
    "features/locks/model": "class Held(Part):\n    feature: ClassVar[str] = 'locks'",
    "features/locks/rules": "run.note(LogKind.LOCK, '')\nraise Refused('', code='LOCK_HELD')",
    "features/locks/steps": "from plansurvive.plans.names import SEIZE\n\nclass Locks(InSteps):\n"
    "    tools, awaits = (SEIZE,), ('lock',)",
    "plans/names": "SEIZE = 'seize'",
}


def tree(root: Path, files: Mapping[str, str]) -> Path:
    """A source tree of these modules."""
    for name, text in files.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.slow
def test_the_tree_keeps_the_rules() -> None:
    assert len(known(ROOT)) > 20
    assert main(["--check"]) == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("if step.workspace_lock:\n    pass", "field workspace_lock"),
        ("value = data['workspaceLock']", "field workspaceLock"),
        ("days = self.settings.lock_days", "setting lock_days"),
        ("held = run.parts.get('locks')", "part locks"),
        ("if 'locks' in run.parts:\n    pass", "part locks"),
        ("if result.code == 'LOCK_HELD':\n    pass", "code LOCK_HELD"),
        ("if code in {'OTHER_CODE', 'LOCK_HELD'}:\n    pass", "code LOCK_HELD"),
        ("match code:\n    case 'LOCK_HELD':\n        pass", "code LOCK_HELD"),
        ("texts = {'LOCK_HELD': 'held'}", "code LOCK_HELD"),
        ("if entry.kind is LogKind.LOCK:\n    pass", "log LOCK"),
        ("if step.tool == 'seize':\n    pass", "tool seize"),
        ("from plansurvive.plans.names import SEIZE as S\nif name in (S, 'x'):\n    pass", "tool seize"),
        ("if state.awaiting in ('lock', 'approval'):\n    pass", "awaits lock"),
    ],
)
def test_a_place_in_the_core_that_branches_on_a_name_of_a_feature_is_seen(
    tmp_path: Path, text: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tree(tmp_path, LOCKS | {"client/a": text})
    [place] = known(root)["locks"].places
    assert place.startswith("client/a.py:")
    assert place.endswith(f" {name}")
    assert main(["--check", "--root", str(root)]) == 1
    assert place in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        '"""Waits for the lock: LOCK_HELD."""',
        "raise Refused('seize')",
        "if kind == 'lock':\n    pass",
        "class Plan:\n    workspace_lock: bool = False",
        "state: Literal['seize'] = 'seize'",
    ],
)
def test_what_only_mentions_a_name_is_no_place(tmp_path: Path, text: str) -> None:
    assert known(tree(tmp_path, LOCKS | {"client/a": text}))["locks"].places == []


def test_the_words_that_a_field_may_have_are_of_the_language(tmp_path: Path) -> None:
    text = "EVENTS = ('workspace_lock', 'failed')\nif event == 'workspace_lock':\n    pass"
    [place] = known(tree(tmp_path, LOCKS | {"plans/model/notify": text}))["locks"].places
    assert place == "plans/model/notify.py:2 field workspace_lock"


def test_a_code_that_the_core_produces_as_well_is_of_no_feature(tmp_path: Path) -> None:
    text = "def f(code):\n    if code == 'LOCK_HELD':\n        return 'LOCK_HELD'"
    assert known(tree(tmp_path, LOCKS | {"client/a": text}))["locks"].places == []


def test_who_imports_a_feature_is_seen_and_neither_the_core_nor_three_features_may(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {f"features/{name}/__init__": "" for name in "abc"}
    others |= {f"features/{name}/rules": "from plansurvive.features.locks import model" for name in "abc"}
    others["apps/web/a"] = "import plansurvive.features.locks.model"
    others["plans/a"] = "def f():\n    import plansurvive.features.locks.rules"
    found = known(tree(tmp_path, LOCKS | others))
    assert (found["locks"].core, found["locks"].others) == (["plans.a"], ["a", "b", "c"])
    assert main(["--check", "--root", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "plans.a is of the core and imports the feature 'locks'" in said
    assert "'locks' is imported by 3 other features: a, b, c" in said


def test_the_core_may_not_branch_on_a_name_of_a_feature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "def f(code):\n    return code == 'LOCK_HELD'"
    assert main(["--check", "--root", str(tree(tmp_path, LOCKS | {"client/a": text}))]) == 1
    assert "the core branches on a name of 'locks': client/a.py:2 code LOCK_HELD" in capsys.readouterr().out
