"""What an extra is for can be imported with the libraries of the base and of that extra alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_one_name import ROOT

PARTS = {
    "mcp": "plansurvive.apps.mcp.commands plansurvive.apps.mcp.server plansurvive.apps.mcp.common"
    " plansurvive.apps.mcp.tools plansurvive.features.tool_servers",
    "review": "plansurvive.apps.review",
    "acp": "plansurvive.features.coding_agents",
    "notify": "plansurvive.features.notify",
    "telemetry": "plansurvive.features.telemetry",
    "s3": "plansurvive.runtime.buckets plansurvive.runtime.storage",
    "gcs": "plansurvive.runtime.buckets plansurvive.runtime.storage",
    "web": "plansurvive.apps.web plansurvive.apps.mcp",
}
"""By extra, the modules and packages that it is for."""
IMPORT = """
import importlib, pkgutil, sys

for name in sys.argv[1].split():
    sys.modules[name] = None  # as if it were not installed
for name in sys.argv[2].split():
    module = importlib.import_module(name)
    for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
        importlib.import_module(each.name)
"""


def needed(*names: str) -> set[str]:
    """The distributions that these need, themselves included, as they are installed here."""
    found, left = set[str](), [Requirement(name) for name in names]
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        key = f"{name}[{','.join(sorted(wanted.extras))}]"
        if key in found:
            continue
        found |= {key, name}
        try:
            asked = [Requirement(each) for each in requires(name) or ()]
        except PackageNotFoundError:
            continue
        left += [
            each for each in asked
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in wanted.extras | {""})
        ]  # fmt: skip
    return found


def modules_of(distributions: Iterable[str]) -> Iterator[str]:
    """The names by which these are imported."""
    names = set(distributions)
    for module, owners in packages_distributions().items():
        if all(canonicalize_name(owner) in names for owner in owners):
            yield module


@pytest.mark.parametrize(
    "extra", ["mcp", *(pytest.param(name, marks=pytest.mark.slow) for name in PARTS if name != "mcp")]
)
def test_what_an_extra_is_for_needs_no_library_of_another_one(extra: str) -> None:
    others = needed("plansurvive[all]") - needed(f"plansurvive[{extra}]")
    hidden = " ".join(sorted(modules_of(others)))
    assert "textual" in hidden or extra == "review"
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, hidden, PARTS[extra]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
