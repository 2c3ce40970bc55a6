"""`make shape` sees what it is there to see: each figure on a small tree made for it, and the rules on today's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import shape
from tests.test_imports import ROOT


def tree(root: Path, **files: str) -> Path:
    """A source tree. `plans__a="..."` is the file plans/a.py."""
    for name, text in files.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.slow
def test_the_tree_keeps_its_rules() -> None:
    measured = shape.measure(ROOT)
    assert len(measured.modules) > 200
    assert measured.breaches() == []


def test_a_cycle_between_modules_is_seen(tmp_path: Path) -> None:
    tree(
        tmp_path,
        plans__a="from plansurvive.plans import b",
        plans__b="def f():\n    import plansurvive.plans.c",
        plans__c="from plansurvive.plans.a import x",
        plans__d="import plansurvive.plans.a",
    )
    assert shape.measure(tmp_path).cycles == [["plans.a", "plans.b", "plans.c"]]
    assert shape.main(["--root", str(tmp_path), "--check"]) == 1


def test_a_cycle_by_an_import_for_type_checking_is_one_as_well(tmp_path: Path) -> None:
    lazy = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from plansurvive.plans import a"
    measured = shape.measure(tree(tmp_path, plans__a="from plansurvive.plans import b", plans__b=lazy))
    assert (measured.cycles, measured.named_cycles) == ([], [["plans.a", "plans.b"]])
    assert shape.main(["--root", str(tmp_path), "--check"]) == 1


def test_folders_that_import_each_other_are_counted_where_no_modules_do(tmp_path: Path) -> None:
    tree(
        tmp_path,
        plans__a__x="from plansurvive.plans.b import y",
        plans__b__y="",
        plans__b__z="import plansurvive.plans.a.x",
        plans__c__w="",
    )
    measured = shape.measure(tmp_path)
    assert (measured.named_cycles, measured.folder_cycles) == ([], [["plans/a", "plans/b"]])


def test_sizes_are_reported_and_break_no_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = "def long():\n" + "    x = 1\n" * 499
    short = "def short(a):\n    if a:\n        return [b for b in a if b and b]\n"
    tree(tmp_path, plans__big=long, **{f"plans__views__m{number}": short for number in range(99)})
    assert shape.main(["--root", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "| lines of a module, p50 / p90 / most | 3 / 3 / 500 (plans.big) |" in printed
    assert "| lines of a function, p50 / p90 / p99 / most | 3 / 3 / 3 / 500 (plans.big.long) |" in printed
    assert "| branches of a function, p50 / p90 / p99 / most | 3 / 3 / 3 / 3 (" in printed


def test_comments_are_counted_by_the_line(tmp_path: Path) -> None:
    source = "# why\nx = 1  # which\n\ndef f():\n    # then\n    return '# no'\n"
    assert shape.measure(tree(tmp_path, plans__a=source)).comment_lines == 2


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("def _f():\n    return 1\nx = _f()", ["plans.a._f"]),
        ("class A:\n    def _f(self):\n        return 1\n    def g(self):\n        return self._f()", ["plans.a._f"]),
        ("def _f():\n    return 1\nx = _f() + _f()", []),
        ("def f():\n    return 1\nx = f()", []),
        ("def _f():\n" + "    a = 1\n" * shape.SHORT + "x = _f()", []),
    ],
)
def test_short_private_functions_of_one_use_are_counted(source: str, seen: list[str], tmp_path: Path) -> None:
    assert shape.measure(tree(tmp_path, plans__a=source)).dwarfs == seen


@pytest.mark.parametrize("base", ["speaking", "taking_back", "agent_reporting"])
def test_a_gerund_is_seen(base: str, tmp_path: Path) -> None:
    tree(tmp_path, **{f"client__{base}": ""})
    assert shape.measure(tmp_path).gerunds == [f"client/{base}"]


@pytest.mark.parametrize("base", ["pending", "string", "planning_prompts", "schedule"])
def test_a_noun_is_not_a_gerund(base: str) -> None:
    assert not shape.is_gerund(base)


def test_a_base_name_in_two_folders_is_seen(tmp_path: Path) -> None:
    tree(tmp_path, plans__edits="", client__edits="", client__cli__runs="")
    assert shape.measure(tmp_path).shared_names == {"edits": ["plans", "client"]}


def test_uses_of_any_are_counted_and_its_import_is_not(tmp_path: Path) -> None:
    source = "import typing\nfrom typing import Any\ndef f(x: Any) -> dict[str, typing.Any]: ..."
    assert shape.measure(tree(tmp_path, plans__a=source)).any_uses == 2


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("import lib\nlib.thing._hidden", "._hidden"),
        ("from lib._hidden import x", "import _hidden"),
        ("import lib\nclass A(lib.B):\n    def _hidden(self):\n        return super()._hidden()", "def _hidden"),
        ("import lib\nvars(lib).get('_very_hidden')", "'_very_hidden'"),
    ],
)
def test_a_private_member_of_a_library_is_seen(source: str, seen: str, tmp_path: Path) -> None:
    [found] = shape.measure(tree(tmp_path, plans__a=source)).foreign_private
    assert found.endswith(seen)


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def __init__(self):\n        self._x = 1\ndef f(a):\n    return a._x",
        "class A(B):\n    @validator\n    def _check(self): ...",
        "class A(B):\n    def f(self):\n        return self._g()\n    def _g(self): ...",
        "import os\nos._exit(0)",
    ],
)
def test_a_private_member_of_ours_is_not_a_librarys(source: str, tmp_path: Path) -> None:
    assert shape.measure(tree(tmp_path, plans__a=source)).foreign_private == []


def test_a_revision_is_measured_beside_the_working_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True)

    git("init", "--quiet")
    tree(tmp_path, plans__speaking="def f():\n    return 1\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "First")
    (tmp_path / "plans/speaking.py").rename(tmp_path / "plans/rpc.py")
    tree(tmp_path, plans__model="x = 1\n")
    assert shape.main(["--root", str(tmp_path), "--beside", "HEAD"]) == 0
    printed = capsys.readouterr().out
    assert "| figure | working tree | HEAD |" in printed
    assert "| modules | 2 | 1 |" in printed
    assert "| gerund file names | 0 | 1 |" in printed


def test_words_that_scripts_write_are_counted_apart(tmp_path: Path) -> None:
    (tmp_path / "docs/reference").mkdir(parents=True)
    (tmp_path / "README.md").write_text("One two\n\n<!-- table: begin (by a script) -->\nthree\n<!-- table: end -->\n")
    (tmp_path / "docs/reference/errors.md").write_text("# Four five\n")
    counted = shape.words(tmp_path)
    assert {name: written for name, (written, _) in counted.items()} == {"README.md": 2, "docs/reference/errors.md": 0}
    assert counted["docs/reference/errors.md"] == (0, 3)
