"""Fetches the JavaScript that the web page uses into apps/web/static/vendor: `python -m scripts.vendor`.

The manifest there says what: package, version, digest of the package, the files taken from it with theirs, licence.
What is fetched must have these digests. `--check` compares the files with the manifest and needs no network; so does a
test. `--new PACKAGE@VERSION FILE...` prints the entry for a package that is not in the manifest yet.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).resolve().parent.parent / "apps" / "web" / "static" / "vendor"
MANIFEST = VENDOR / "manifest.json"


def entries() -> list[dict[str, Any]]:
    """The packages of the manifest: name, version, licence, sha256, and files: from (in the package), to, sha256."""
    found: list[dict[str, Any]] = json.loads(MANIFEST.read_text())["packages"]
    return found


def problems() -> list[str]:
    """Where the files differ from the manifest."""
    listed = {file["to"]: file["sha256"] for entry in entries() for file in entry["files"]}
    present = {path.relative_to(VENDOR).as_posix(): digest(path.read_bytes()) for path in VENDOR.rglob("*")
               if path.is_file() and path != MANIFEST}  # fmt: skip
    names = sorted(listed.keys() | present.keys())
    return [f"{name}: {_difference(name, listed, present)}" for name in names if listed.get(name) != present.get(name)]


def fetched(name: str, version: str) -> bytes:
    """A package as the registry has it, a gzipped tar file, by `npm pack`. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"{name}@{version}", "--pack-destination", folder]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        (file,) = Path(folder).glob("*.tgz")
        return file.read_bytes()


def unpacked(package: bytes, names: list[str]) -> dict[str, bytes]:
    """Files of a package by their names in it. Raises KeyError for one that it does not have."""
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        found = {name: archive.extractfile(f"package/{name}") for name in names}
        return {name: file.read() for name, file in found.items() if file is not None}


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def _difference(name: str, listed: dict[str, str], present: dict[str, str]) -> str:
    if name not in present:
        return "missing"
    return "differs from the manifest" if name in listed else "not in the manifest"


def _install(entry: dict[str, Any]) -> None:
    package = fetched(entry["name"], entry["version"])
    if digest(package) != entry["sha256"]:
        sys.exit(f"{entry['name']}@{entry['version']} is not the package of the manifest: {digest(package)}")
    files = unpacked(package, [file["from"] for file in entry["files"]])
    for file in entry["files"]:
        if digest(files[file["from"]]) != file["sha256"]:
            sys.exit(f"{file['from']} of {entry['name']} is not the file of the manifest")
        target = VENDOR / file["to"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files[file["from"]])


def _new(package: str, names: list[str]) -> dict[str, Any]:
    name, _, version = package.rpartition("@")
    data = fetched(name, version)
    files = unpacked(data, [*names, "package.json"])
    licence = json.loads(files["package.json"]).get("license", "")
    listed = [{"from": each, "to": Path(each).name, "sha256": digest(files[each])} for each in names]
    return {"name": name, "version": version, "licence": licence, "sha256": digest(data), "files": listed}


def main() -> None:
    """Fetch, check, or print a new entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--new", nargs="+", metavar=("PACKAGE@VERSION", "FILE"))
    given = parser.parse_args()
    if given.new:
        sys.stdout.write(json.dumps(_new(given.new[0], given.new[1:]), indent=2) + "\n")
        return
    if not given.check:
        for entry in entries():
            _install(entry)
    found = problems()
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
