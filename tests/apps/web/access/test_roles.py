"""Who has which role: pairs or a file, the most specific rule first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plansurvive.client.access.people import Role
from plansurvive.client.access.roles import RoleSource
from plansurvive.runtime.settings import SettingError

RULES = (
    "*=viewer, @example.org=approver, group:ops=operator, group:all=viewer, bob@example.org=none,"
    " group:cn=a=approver, Carl=operator, Boss@other.example=operator, straße=operator, karl=operator,"
    " ren\u00e9=operator, @kr.example=operator"
)


@pytest.mark.parametrize(
    ("name", "groups", "role"),
    [
        ("x@other.example", [], Role.VIEWER),
        ("ann@example.org", [], Role.APPROVER),
        ("ANN@EXAMPLE.ORG", [], Role.APPROVER),
        ("ann@example.org.evil", [], Role.VIEWER),
        ("ann@evil@example.org", [], Role.APPROVER),
        ("ann@example.org", ["all", "ops"], Role.OPERATOR),
        ("ann@example.org", ["all"], Role.VIEWER),
        ("ann@example.org", ["OPS", "group:ops"], Role.APPROVER),
        ("bob@example.org", ["ops"], None),
        ("carl", [], Role.OPERATOR),
        ("x", ["cn=a"], Role.APPROVER),
        # A name that looks like a rule is only a name.
        ("group:ops", [], Role.VIEWER),
        ("@example.org", [], Role.APPROVER),
        ("*", [], Role.VIEWER),
        ("GROUP:ops", [], Role.VIEWER),
        # Names that are one only after folding letters beyond ASCII are names of different people.
        ("boſſ@other.example", [], Role.VIEWER),
        ("boss@other.example", [], Role.OPERATOR),
        ("strasse", [], Role.VIEWER),
        ("STRAßE", [], Role.VIEWER),
        ("straße", [], Role.OPERATOR),
        ("\u212aarl", [], Role.VIEWER),
        ("karl", [], Role.OPERATOR),
        ("rene\u0301", [], Role.OPERATOR),
        ("ann@\u212ar.example", [], Role.VIEWER),
    ],
)
def test_the_most_specific_rule_decides(name: str, groups: list[str], role: Role | None) -> None:
    assert RoleSource(RULES).role(name, groups) is role


def test_somebody_whom_no_rule_names_may_do_nothing() -> None:
    assert RoleSource("ann=viewer").role("bob", []) is None
    assert RoleSource("").role("bob", []) is None


@pytest.mark.parametrize(
    "text", ["ann", "ann=king", "=viewer", "group:=viewer", "@=viewer", "a=viewer,A=operator", "GROUP:ops=viewer"]
)
def test_rules_that_cannot_be_meant_are_refused(text: str) -> None:
    with pytest.raises(SettingError) as caught:
        RoleSource(text)
    assert caught.value.code == "BAD_SETTING:PLANS_WEB_ROLES"


@pytest.mark.parametrize(
    "text",
    ["", "[roles", "x = 1", "[roles]\nking = []", "[roles]\nviewer = 'ann'", "[roles]\nviewer = [1]", "roles = 1"],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "web.toml"
    path.write_text(text)
    with pytest.raises(SettingError):
        RoleSource(str(path))
    with pytest.raises(SettingError):
        RoleSource(str(tmp_path / "none.toml"))


def test_a_file_counts_as_it_is_now_and_a_broken_one_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "web.toml"
    path.write_text('[roles]\noperator = ["ann"]\n')
    source = RoleSource(str(path))
    assert source.role("ann", []) is Role.OPERATOR
    path.write_text('[roles]\nviewer = ["ann"]\n')
    os.utime(path, ns=(1, 1))
    assert source.role("ann", []) is Role.VIEWER
    path.write_text("[roles")
    assert source.role("ann", []) is Role.VIEWER
    path.unlink()
    assert source.role("ann", []) is Role.VIEWER
