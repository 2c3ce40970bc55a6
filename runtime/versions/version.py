"""A version of the workers' code, NAME/BUILD: the name of what is deployed, and which build of it.

A build is named by the hash of everything that a worker runs, unless somebody names it. Equal code is an equal build on
every machine, whatever the dates of its files.

The hash of everything a worker runs: hashing only workflow code would give a release with a broken tool the build of
the one before, and nothing to roll back to.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from plansurvive.runtime.base.code_place import CODE

PACKAGES = ("plans", "runtime", "activities", "workflows", "features")
LIBRARIES = ("temporalio", "pydantic", "jmespath", "jsonschema")
"""Libraries whose code decides what a workflow does next."""
UNVERSIONED = "unversioned"
"""In the place of a build: the workers that run without a version."""


@dataclass(frozen=True)
class Version:
    """A version of the workers' code."""

    name: str
    build: str

    @classmethod
    def of(cls, text: str, tools: Iterable[str] = ()) -> Version:
        """Read NAME/BUILD, or NAME for the code that runs here with these tools (paths and modules)."""
        name, _, build = text.partition("/")
        return cls(name, build or build_of_code(tuple(tools)))

    @property
    def text(self) -> str:
        """As people write it."""
        return f"{self.name}/{self.build}"

    @property
    def indexed(self) -> str:
        """As the server's search attributes have it."""
        return f"{self.name}:{self.build}"

    @property
    def on_server(self) -> WorkerDeploymentVersion:
        """As the SDK has it."""
        return WorkerDeploymentVersion(self.name, self.build)


def deployment_of(version: Version | None) -> WorkerDeploymentConfig | None:
    """What makes a worker one of this version: its plans stay with it until they continue as new."""
    if version is None:
        return None
    return WorkerDeploymentConfig(
        version=version.on_server,
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


@cache
def build_of_code(tools: tuple[str, ...] = (), root: Path = CODE) -> str:
    """The hash, 12 digits, of the code of a worker: ours, the user's own tools that are files, and libraries."""
    digest = hashlib.sha256()
    for file in [root / "worker.py", *(file for name in PACKAGES for file in sorted((root / name).rglob("*.py")))]:
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode() + _content(file))
    for tool in sorted(tools):
        digest.update(f"{Path(tool).name}\0".encode() + (_content(Path(tool)) if Path(tool).is_file() else b""))
    for library in LIBRARIES:
        digest.update(f"{library} {metadata.version(library)}\0".encode())
    digest.update(f"{sys.version_info.major}.{sys.version_info.minor}".encode())
    return digest.hexdigest()[:12]


def _content(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()
