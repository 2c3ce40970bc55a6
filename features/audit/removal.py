"""What garbage collection does with audit records: only a person removes them, and the ledger says who removes what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from plansurvive.features.audit.ledger import Ledger
from plansurvive.plans.model.identities import AGENT_PREFIX
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.unused import Records

PATTERN = "audit-*.jsonl"


def _removing(settings: Settings, folder: Path, going: Sequence[Path]) -> None:
    heads, owner = list[str](), ""
    for path in going:
        if path.match(PATTERN):
            with suppress(FileNotFoundError):
                first, *_, last = path.read_text(encoding="utf-8", errors="replace").splitlines() or ["", ""]
                owner = _field(first, "workflowId") or owner
                heads.append(_field(last, "head") or "unreadable")
    workflow_id = owner or (folder.name if folder.name.startswith(AGENT_PREFIX) else f"plan-{folder.name}")
    names = ", ".join(sorted(path.name for path in going))
    Ledger.of(settings).pruned(workflow_id, names[:1_000], " ".join(heads)[:1_000])


def _field(line: str, name: str) -> str:
    with suppress(ValueError, RecursionError, AttributeError):
        return str(json.loads(line).get(name, ""))
    return ""


RECORDS = Records(PATTERN, _removing)
