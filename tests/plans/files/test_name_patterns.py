"""The list of protected names and the patterns of a worker: what fits, what is refused."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from plansurvive.plans.files.name_patterns import DEFAULT, ProtectedNames, folded, pattern_problem
from plansurvive.plans.files.protected_names import CATEGORIES
from plansurvive.runtime.settings import SettingError, Settings
from tests.kit.growth import cpu, growth


def test_the_list_is_written_as_names_are_compared_and_has_no_name_twice() -> None:
    for category in CATEGORIES:
        for kind in (category.folders.split(), category.files.split()):
            assert len(kind) == len(set(kind))
            for text in kind:
                assert text == "/".join(folded(name) for name in text.split("/")), text
                assert pattern_problem(text) == "", text


@pytest.mark.parametrize("strict", [True, False])
def test_every_pattern_of_the_list_protects_what_it_names(strict: bool) -> None:
    for category in (each for each in CATEGORIES if each.strict is strict):
        for text in category.folders.split():
            example = text.replace("[1-9]", "1").replace("*", "x").replace("?", "y")
            assert DEFAULT.reason((*example.split("/"), "below", "file.txt")), text
        for text in category.files.split():
            found = DEFAULT.reason(("deep", *text.replace("[1-9]", "1").replace("*", "x").replace("?", "y").split("/")))
            assert found, text
            assert found.strict or not strict, text


def test_what_scans_look_at_misses_nothing_that_is_strict() -> None:
    names = ProtectedNames(("secret?.txt", "vault/keys", "plain"))
    examples = [text for each in CATEGORIES if each.strict for text in (*each.folders.split(), *each.files.split())]
    for text in (*examples, "secret1.txt", "keys", "plain", "Secret2.TXT", "AGENTS.MD", "agents.md.", "agents.md:s"):
        assert names.may_be_strict(text.rpartition("/")[2].replace("*", "x").replace("?", "y")), text
    assert not any(map(names.may_be_strict, ("main.py", "Makefile", "README.md", "package.json")))


@pytest.mark.parametrize(
    ("patterns", "path", "expected"),
    [
        (("secrets",), "secrets", True),
        (("secrets",), "a/secrets/b/c", True),
        (("secrets",), "a/secrets.txt", False),
        (("secrets/",), "a/SECRETS/b", True),
        (("secrets/**",), "secrets/b", True),
        (("/secrets",), "a/secrets/b", False),
        (("/secrets/*.txt",), "secrets/b.txt", True),
        (("*.key",), "a/b.key", True),
        (("*.key", "!public.key"), "a/public.key", False),
        (("!public.key", "*.key"), "a/public.key", True),
        (("!.git",), ".git/hooks/x", False),
        (("!*",), "Makefile", False),
        (("*",), "notes.txt", True),
        (("a[0-9].txt",), "a7.txt", True),
        (("a[0-9].txt",), "ab.txt", False),
        (("a[!0-9].txt",), "ab.txt", True),
        (("a.b",), "axb", False),
        ((), "notes.txt", False),
    ],
)
def test_patterns_of_a_worker(patterns: tuple[str, ...], path: str, expected: bool) -> None:
    assert [pattern_problem(each) for each in patterns] == [""] * len(patterns)
    assert (ProtectedNames(patterns).reason(path.split("/")) is not None) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        "!",
        "/",
        "a//b",
        "..",
        "a/../b",
        "a/**/b",
        "a\\b",
        "[ab",
        "a]b",
        "[]",
        "[!]",
        "[z-a]",
        "a\u200bb",
        "x" * 201,
        "!/",
        ".",
        "**/*",
    ],
)
def test_patterns_that_cannot_be_meant_are_refused_at_start(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        Settings.read({"HOME": str(tmp_path), "PLANS_PROTECTED": f"good,{pattern}"})
    assert caught.value.code == "BAD_SETTING:PLANS_PROTECTED"
    assert repr(pattern)[1:20] in caught.value.message


def test_a_pattern_with_many_stars_takes_no_longer_than_one_with_few() -> None:
    few, many = (ProtectedNames(("*a" * stars + "b",)) for stars in (2, 30))
    name = ("a" * 255,)
    assert few.reason(name) is many.reason(name) is None
    assert cpu(lambda: [many.reason(name) for _ in range(200)]) < 30 * cpu(lambda: [few.reason(name)] * 200) + 0.2


@pytest.mark.parametrize("pattern", ["*a*b*", "*ab*ab", "a**b", "*[ab]*c", "x*y/z*w", "*?*a"])
@pytest.mark.parametrize("text", ["aabb", "xabyab", "ab", "aXb", "bc", "xy/zw", "xyy/zzw", "ca", "a", "xa/b", "aab/ab"])
def test_stars_fit_as_fnmatch_has_them(pattern: str, text: str) -> None:
    expected = any(
        all(fnmatchcase(name, part) for name, part in zip(names, pattern.split("/"), strict=False))
        for start in range(text.count("/") + 1)
        if len(names := text.split("/")[start:]) >= pattern.count("/") + 1
    )
    assert (ProtectedNames((pattern,)).reason(text.split("/")) is not None) == expected


def test_a_deep_path_is_looked_at_in_proportion_to_its_length() -> None:
    assert growth(lambda size: lambda: DEFAULT.reason([".git/modules"] * size), 3_000) < 10


@pytest.mark.parametrize(
    "path",
    [
        *(".sl/config", "_darcs/prefs/defaults", "sub/.ycm_extra_conf.py", "fish/config.fish", ".zshrc.d/a", "env.nu"),
        *(
            ".mongoshrc.js",
            "hatch_build.py",
            "manage.py",
            "alembic/env.py",
            "gatsby-node.js",
            "knexfile.ts",
            "PKGBUILD",
        ),
        *("debian/rules", "renv/activate.R", ".golangci.yml", "a-1.rockspec", ".DDEV/config.yaml", "profiles.clj"),
    ],
)
def test_less_common_names_that_run_code_are_in_the_list(path: str) -> None:
    assert DEFAULT.reason(path.split("/"))
    assert DEFAULT.reason(["src", *path.split("/")])
    assert not DEFAULT.reason([f"x{part}y" for part in path.split("/")])
