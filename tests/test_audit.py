"""`make audit`: the bills of materials list all that is locked, and a look-up that did not happen is no good news."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from scripts.audit import LOCKS, judged
from scripts.sbom import bill, locked

ROOT = Path(__file__).parent.parent
KNOWN = {"id": "GHSA-xxxx", "fix_versions": ["1.1"]}
HASH = "0" * 64


def report(*packages: dict[str, object]) -> str:
    return json.dumps({"dependencies": list(packages), "fixes": []})


@pytest.mark.parametrize("lock", sorted(LOCKS))
def test_the_bill_lists_every_locked_package_with_version_and_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = re.findall(r"^([\w.-]+)==(\S+)(.*(?:\n    --hash.*)*)", text, re.MULTILINE)
    expected = {
        (canonicalize_name(name), version, frozenset(re.findall(r"[0-9a-f]{64}", rest)))
        for name, version, rest in entries
    }
    components = bill("x", "1", text)["components"]
    listed = {
        (each["name"], each["version"], frozenset(one["content"] for one in each["hashes"])) for each in components
    }
    assert listed == expected
    assert len(components) == len(entries) == len(re.findall(r"^\S.*==", text, re.MULTILINE))
    assert sum(len(each["hashes"]) for each in components) == text.count("--hash=sha256:")
    assert all(each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}" for each in components)


def test_the_bill_is_cyclonedx_and_the_same_every_time() -> None:
    text = (ROOT / "requirements.lock").read_text()
    made = bill("plans", "0.1.0", text)
    assert made == bill("plans", "0.1.0", text)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(
        r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", made["serialNumber"]
    )
    references = [each["bom-ref"] for each in made["components"]]
    assert len(set(references)) == len(references)
    assert made["dependencies"] == [{"ref": "plans", "dependsOn": sorted(references)}]


def test_where_a_package_is_installed_is_told() -> None:
    (found,) = locked(f"a.b==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:{HASH}\n")
    assert (found.name, found.version, found.hashes) == ("a-b", "1.0", (HASH,))
    assert found.marker == 'sys_platform == "win32"'


@pytest.mark.parametrize(
    "lock", ["a==1.0\n", f"a>=1.0 \\\n    --hash=sha256:{HASH}\n", f"a \\\n    --hash=sha256:{HASH}"]
)
def test_a_lock_without_version_or_hash_gives_no_bill(lock: str) -> None:
    with pytest.raises(ValueError, match="no single version with hashes"):
        locked(lock)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (report({"name": "a", "version": "1", "vulns": []}), 0, "1 packages, no known"),
        (report({"name": "a", "version": "1", "vulns": [KNOWN]}), 1, "a 1: GHSA-xxxx, mended in 1.1"),
        (report({"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "x"}), 2, "1 of 2 packages"),
        (
            report({"name": "b", "skip_reason": "x"}, {"name": "a", "version": "1", "vulns": [KNOWN]}),
            1,
            "1 of 2 packages",
        ),
        (report(), 2, "not reached"),
        ("", 2, "no report"),
        ("No known vulnerabilities found", 2, "no report"),
        ("[]", 2, "no report"),
    ],
)
def test_only_a_complete_look_up_is_good_news(text: str, code: int, says: str) -> None:
    found, said = judged(text)
    assert found == code
    assert says in "\n".join(said)


def test_what_audits_is_locked_too() -> None:
    tools = {each.name for each in locked((ROOT / "scripts/audit.lock").read_text())}
    assert "pip-audit" in tools
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "pip-audit" not in str(project)
