"""What tests share."""

from __future__ import annotations

from pathlib import Path

LEDGER_TOOLS = str(Path(__file__).resolve().parent / "ledger_tools.py")
"""Tools that write down when their calls start and end, as PLANS_TOOLS names them."""
