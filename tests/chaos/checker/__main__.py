"""`python -m tests.chaos.checker RECORD WORKSPACE`: judges a record, as JSON. Exit code 1 if there are findings.

A program of its own that imports nothing of the engine: what it believes is in histories, ledgers and files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.chaos.checker.record import Record
from tests.chaos.checker.recovery import recovery
from tests.chaos.checker.rules import counts, findings


def main(folder: str, workspace: str) -> int:
    """Print the verdict; returns the exit code."""
    record = Record.read(Path(folder), Path(workspace))
    found = findings(record)
    verdict = {
        "plans": len(record.promises),
        "workflows": len(record.workflows),
        "steps": sum(1 for each in record.workflows.values() for _ in each.of_type("ActivityTaskCompleted")),
        "kills": sum(len(fault.killed) for fault in record.faults),
        "counts": counts(found),
        "findings": [str(each) for each in found],
        "recovery": {name: [round(value, 3) for value in values] for name, values in recovery(record).items()},
    }
    print(json.dumps(verdict))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
