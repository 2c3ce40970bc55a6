"""`make audit`: writes the bills of materials of both locks, and asks for known vulnerabilities of what is locked.

    python -m scripts.audit PIP_AUDIT DIRECTORY

Exit code 0: every package was looked up, and none has a known vulnerability. 1: some have. 2: not all could be looked
up, as without a network: pip-audit itself calls that "no known vulnerabilities". The bills are written in any case.

pip-audit exits with 0 when it reached nothing, so its report is read.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from scripts.sbom import bill

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {"requirements.lock": "sbom.cdx.json", "docker/requirements.lock": "sbom-worker.cdx.json"}
"""The locks, with the names of their bills. The second is a part of the first, which is the one to be looked up."""


def judged(report: str) -> tuple[int, list[str]]:
    """The exit code for a report of pip-audit in JSON, and what to say."""
    try:
        packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return 2, ["Nothing was looked up: pip-audit gave no report."]
    skipped = [each["name"] for each in packages if "skip_reason" in each]
    found = [(each, wrong) for each in packages for wrong in each.get("vulns", [])]
    said = [f"{each['name']} {each['version']}: {wrong['id']}, mended in {_mended(wrong)}" for each, wrong in found]
    if skipped or not packages:
        said.append(
            f"{len(skipped)} of {len(packages)} packages could not be looked up ({', '.join(skipped[:3])} ...)."
        )
        said.append("The service for known vulnerabilities was not reached; try again with a network.")
    if found:
        return 1, said
    return (2, said) if skipped or not packages else (0, [f"{len(packages)} packages, no known vulnerability."])


def _mended(wrong: dict[str, Any]) -> str:
    return ", ".join(wrong.get("fix_versions", [])) or "no version yet"


def main(pip_audit: str, directory: Path) -> int:
    """Write the bills, look up, and print the result."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    directory.mkdir(parents=True, exist_ok=True)
    for lock, name in LOCKS.items():
        whole = bill(project["name"], project["version"], (ROOT / lock).read_text())
        (directory / name).write_text(json.dumps(whole, indent=1) + "\n")
        print(f"{directory / name}: {len(whole['components'])} packages of {lock}")
    command = [pip_audit, "--requirement", str(ROOT / "requirements.lock"), "--require-hashes", "--disable-pip"]
    done = subprocess.run([*command, "--format", "json", "--progress-spinner", "off"], capture_output=True, text=True)
    code, said = judged(done.stdout)
    print("\n".join(said), file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
