"""Updates the measured tables in docs/reference/measurements.md, between two markers; other text is left alone."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.tables import Table

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def write(file: Path, tables: Sequence[Table], repeats: int) -> None:
    """Replace or add the tables in the file; tables that were not measured this time stay."""
    text = file.read_text() if file.exists() else f"# Performance\n\n{BEGIN}\n{END}\n"
    head, _, rest = text.partition(BEGIN)
    measured, _, tail = rest.partition(END)
    sections = _sections(measured)
    stamp = machine(repeats)
    for table in tables:
        sections[table.title] = f"{table.markdown()}\n\n{stamp}"
    file.write_text(f"{head}{BEGIN}\n\n" + "\n\n".join(sections.values()) + f"\n\n{END}{tail}")


def machine(repeats: int) -> str:
    """Date, machine, versions and number of repetitions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"*{datetime.now(UTC):%Y-%m-%d}; median of {repeats}; {os.cpu_count()} cores, {memory:.0f} GiB,"
        f" {platform.system()}; Python {platform.python_version()}, temporalio {version('temporalio')}.*"
    )


def _sections(measured: str) -> dict[str, str]:
    """The existing tables by title."""
    sections = measured.strip().split("## ")[1:]
    return {section.partition("\n")[0].strip(): f"## {section}".strip() for section in sections}
