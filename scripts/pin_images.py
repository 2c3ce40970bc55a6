"""Writes what docker-compose.yml takes from `.env`: a password, and the digest of each image it names by tag.

A digest is that of the tag on the day it is looked up, with Docker; from then on Compose runs that image and no other.
What `.env` says already is kept: delete a line to look it up again.

No digest of Temporal's images could be confirmed, so none is in the file. Without one, Compose runs what the tag names.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from plansurvive.runtime.base.atomic_file import write_whole

ROOT = Path(__file__).resolve().parent.parent
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NAMED = re.compile(r"^[^#\n]*?([\w./:-]+)\$\{(\w+_DIGEST):\+@", re.MULTILINE)
PASSWORD = "POSTGRES_PASSWORD"  # noqa: S105 - its name


def missing(compose: str, present: str) -> dict[str, str]:
    """The digests that Compose takes and `.env` lacks: their names with the images they are the digests of."""
    known = set(re.findall(r"^(\w+)=.", present, re.MULTILINE))
    return {name: image for image, name in NAMED.findall(compose) if name not in known}


def pinned(compose: str, present: str, digest_of: Callable[[str], str]) -> str:
    """The text of `.env` with everything that Compose takes from it. Raises ValueError for a digest that is none."""
    lines = [present.rstrip("\n")] if present.strip() else []
    if not re.search(rf"^{PASSWORD}=.", present, re.MULTILINE):
        lines.append(f"{PASSWORD}={secrets.token_urlsafe(24)}")
    for name, image in missing(compose, present).items():
        digest = digest_of(image)
        if not DIGEST.fullmatch(digest):
            raise ValueError(f"{image}: {digest[:200]!r} is no digest")
        lines.append(f"{name}={digest}")
    return "\n".join(lines) + "\n"


def _look_up(image: str) -> str:
    command = ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Look up what is missing, and say what was written."""
    file = ROOT / ".env"
    present = file.read_text() if file.exists() else ""
    try:
        text = pinned((ROOT / "docker-compose.yml").read_text(), present, _look_up)
    except FileNotFoundError:
        sys.exit("Docker is needed to look up the digests of the images: https://docs.docker.com/get-docker/")
    except subprocess.CalledProcessError as error:
        sys.exit(f"Docker could not look up a digest: {error.stderr.strip()}")
    except ValueError as error:
        sys.exit(str(error))
    write_whole(file, text.encode())
    os.write(1, f"{file} has a password and all digests.\n".encode())


if __name__ == "__main__":
    main()
