"""The software bill of materials of a lock, as CycloneDX JSON: every package with its version and hashes.

It comes from the lock alone, so it is the same everywhere and needs no network.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from dataclasses import dataclass
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SPECIFICATION = "1.6"


@dataclass(frozen=True)
class Locked:
    """One package of a lock."""

    name: str
    version: str
    marker: str
    """Where it is installed, as pip understands it; empty: everywhere."""
    hashes: tuple[str, ...]
    """SHA-256 of every file of that version."""

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def locked(lock: str) -> list[Locked]:
    """The packages of a lock with hashes. Raises ValueError for one without a version or a hash."""
    found = []
    for entry in re.split(r"\n(?=[^\s#])", lock.strip()):
        text = " ".join(line.rstrip("\\").strip() for line in entry.splitlines())
        requirement = Requirement(text.split(" --hash=")[0].strip())
        versions = [each.version for each in requirement.specifier if each.operator == "=="]
        hashes = tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))
        if len(versions) != 1 or not hashes:
            raise ValueError(f"{requirement.name} has no single version with hashes in the lock")
        name = canonicalize_name(requirement.name)
        found.append(Locked(name, versions[0], str(requirement.marker or ""), hashes))
    return found


def bill(name: str, version: str, lock: str) -> dict[str, Any]:
    """The bill of materials of a project with this lock."""
    components = [_component(each) for each in locked(lock)]
    serial = uuid.UUID(bytes=hashlib.sha256(lock.encode()).digest()[:16], version=4)
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPECIFICATION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": name, "version": version, "bom-ref": name}},
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": sorted(each["bom-ref"] for each in components)}],
    }


def _component(package: Locked) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "hashes": [{"alg": "SHA-256", "content": each} for each in package.hashes],
    }
    if package.marker:
        component["properties"] = [{"name": "python:marker", "value": package.marker}]
    return component
