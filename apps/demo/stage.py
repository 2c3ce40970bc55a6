"""The demo's files: a workspace with what twelve shops sold, and the plan, all in a directory of their own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

SHOPS = 12
LAST_REPORT = "# What was sold\n\n11 shops, see shops/*.total\n"
KEPT = ("PLANS_CACHE_DIR", "PLANS_TEMPORAL_FROM", "PLANS_SANDBOX")
"""Settings of the machine, which count for the demo as well; all others would lead to somebody's plans."""


def prepared(place: Path) -> Path:
    """Make workspace and plan file in the directory; returns the plan file."""
    workspace = place / "workspace"
    (workspace / "shops").mkdir(parents=True)
    for number in range(1, SHOPS + 1):
        rows = [f"{day},{number * 7 + index}" for index, day in enumerate(("mon", "tue", "wed", "thu", "fri"))]
        (workspace / "shops" / f"shop-{number:02}.csv").write_text("\n".join(rows) + "\n")
    (workspace / "report.md").write_text(LAST_REPORT)
    plan = place / "plan.yaml"
    plan.write_text((files(__package__) / "plan.yaml").read_text())
    return plan


def contents(workspace: Path) -> dict[str, bytes]:
    """Every file of the workspace, by its path."""
    return {str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()}


def environ_of(place: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the demo's commands: server, worker and data of its own, below `place`."""
    others = {name: text for name, text in environ.items() if not name.startswith(("PLANS_", "TEMPORAL_"))}
    kept = {name: environ[name] for name in KEPT if name in environ}
    return others | kept | {"PLANS_STATE_DIR": str(place / "state"), "PLANS_SERVER": "embedded"}
