"""Where the id of a step ends in `--set`, whatever the keys of items are."""

from __future__ import annotations

import pytest

from plansurvive.plans.editing.step_places import setting_of


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s2.args.path=b.txt", ("s2", "args.path", "b.txt")),
        ("s2.args.rows[0].name=x", ("s2", "args.rows[0].name", "x")),
        ("s2.args.text=a=b[c].d=e", ("s2", "args.text", "a=b[c].d=e")),
        ("resize.thumb.args.size=64", ("resize.thumb", "args.size", "64")),
        ("resize[cat.png].args.path=x", ("resize[cat.png]", "args.path", "x")),
        ("resize[a=b.args.x].thumb.args.path=x=y", ("resize[a=b.args.x].thumb", "args.path", "x=y")),
        ("a[1.5].b[x.y].c#2.args.z=1", ("a[1.5].b[x.y].c#2", "args.z", "1")),
        ("resize.catch.tell.args.text=x", ("resize.catch.tell", "args.text", "x")),
        ("work.finally.tidy.when=x", ("work.finally.tidy", "when", "x")),
        ("pay.undo.refund.args.sum=1", ("pay.undo.refund", "args.sum", "1")),
        ("pay.undo.args.sum=1", ("pay", "undo.args.sum", "1")),
        ("pay.undo.tool=x", ("pay", "undo.tool", "x")),
        ("pay.catch=[]", ("pay", "catch", "[]")),
        ("title=TEXT", ("title", "", "TEXT")),
        ("budget.tokens=5", ("budget", "tokens", "5")),
        ("resize[a.b]=x", ("resize[a.b]", "", "x")),
        ("resize[a=b", ("resize[a", "", "b")),
        ("no equals", ("no equals", "", None)),
        ("", ("", "", None)),
    ],
)
def test_the_field_begins_with_the_first_part_that_names_one(text: str, found: tuple[str, str, str | None]) -> None:
    assert setting_of(text) == found


def test_what_is_longer_than_any_id_and_path_is_not_searched() -> None:
    assert setting_of("[" * 100_000).value is None
    assert setting_of("a." * 100_000 + "args.x=1").path == ""
    assert setting_of("a." * 700 + "args.x=1").path == "args.x"
