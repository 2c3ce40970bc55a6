"""The record of what passes, and the page about it: docs/reference/mcp-conformance.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.suite import EXTENSION, PACKAGE, VERSIONS, Outcome, version

RECORD = Path(__file__).parent / "record.json"
PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "mcp-conformance.md"
REASONS = Path(__file__).parent / "reasons.json"
"""By scenario, in our words, why not all of it passes. A scenario that fails must be in it."""


def of(found: Sequence[Outcome]) -> dict[str, str]:
    """What is compared: by version and scenario, how many checks passed and failed."""
    return {f"{each.version} {each.scenario}": f"{each.passed} passed, {each.failed} failed" for each in found}


def recorded() -> dict[str, str]:
    """The record."""
    found: dict[str, str] = json.loads(RECORD.read_text())
    return found


def write(found: Sequence[Outcome]) -> None:
    """Write the record and the page. Raises ValueError if a scenario fails that has no reason."""
    reasons: dict[str, str] = json.loads(REASONS.read_text())
    if missing := {each.scenario: each.why for each in found if each.failed and each.scenario not in reasons}:
        raise ValueError(f"mend these, or say in {REASONS.name} why they fail: {missing}")
    RECORD.write_text(json.dumps(of(found), indent=2) + "\n")
    PAGE.write_text(page(found))


def page(found: Sequence[Outcome]) -> str:
    """The page."""
    reasons: dict[str, str] = json.loads(REASONS.read_text())
    failed = [each for each in found if each.failed]
    rows = [HEAD.format(package=PACKAGE, version=version())]
    rows += _table(
        ["version", "scenarios", "all checks passed", "checks passed", "checks failed"],
        [_counted(kind, [each for each in found if each.version == kind]) for kind in (*VERSIONS, EXTENSION)],
    )
    rows += ["", "## What does not pass", ""]
    rows += _table(
        ["scenario", "version", "passed", "failed", "why"],
        [[f"`{e.scenario}`", e.version, e.passed, e.failed, reasons[e.scenario]] for e in failed],
    )
    for kind in (*VERSIONS, EXTENSION):
        own = [[f"`{e.scenario}`", e.passed, e.failed, e.left or "–"] for e in found if e.version == kind]
        rows += ["", f"## {'Extensions' if kind == EXTENSION else kind}", ""]
        rows += _table(["scenario", "passed", "failed", "skipped, or a warning"], own)
    return "\n".join(rows) + "\n"


def _counted(kind: str, own: Sequence[Outcome]) -> list[object]:
    whole = sum(not each.failed for each in own)
    return [kind, len(own), whole, sum(each.passed for each in own), sum(each.failed for each in own)]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(str(each) for each in line)} |" for line in lines]


HEAD = """\
# MCP conformance

What the public conformance suite of MCP (`{package}` {version}) says of our server.
`make conformance` runs it and writes this page; the nightly run compares. The server is the real one: at `/mcp` of the
page, behind its guard, with a worker and a Temporal server. Tools that the suite asks for are plans where a plan can be
one, offered as [templates](../mcp.md#templates-as-tools) ([tests/conformance/plans](../../tests/conformance/plans));
those that ask the client's model or person during a call, and resources and prompts, are fixtures beside our own. A
scenario in which a check fails is run again, at most twice, as the suite waits for a stream no longer than 0.6 s.
"""
