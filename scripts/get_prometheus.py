"""Locates or builds the programs of Prometheus, and prints their paths: `promtool` checks the alert rules, and
`prometheus` runs them in tests.

On PATH, else in the cache directory, else built with Go: of a module with a known hash, in the module's own directory,
where Go compares everything else with its go.sum. The server is built without its pages.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from plansurvive.runtime.settings import Settings

MODULE, VERSION = "github.com/prometheus/prometheus", "v0.315.0"
MODULE_SUM = "h1:sFGZWmC2Hk9N1NBJGCnXYZb5hyLCq8yuAMoEjLAg6ac="
"""The module's hash in Go's checksum database."""
Program = Literal["promtool", "prometheus"]


class NoPrometheus(Exception):
    """There is no such program, and it could not be built."""


def program(name: Program, settings: Settings) -> Path:
    """One of the programs. Building it takes some minutes, once. Raises NoPrometheus."""
    cached = settings.cache_dir / "bin" / f"{name}-{VERSION}"
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    if not cached.exists():
        cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _build(name, cached)
    return cached


def _build(name: Program, target: Path) -> None:
    # What turns Go's own checks off is not taken from the user's environment.
    off = dict.fromkeys(("GOFLAGS", "GOINSECURE", "GONOSUMDB", "GONOSUMCHECK", "GOPRIVATE"), "")
    environ = os.environ | off | {"CGO_ENABLED": "0", "GOWORK": "off"}
    if shutil.which("go") is None:
        raise NoPrometheus(f"there is no `{name}`, and no Go to build it with; install one of them")
    asked = ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"]
    answer = subprocess.run(asked, env=environ, capture_output=True, text=True, check=False)
    try:
        module = json.loads(answer.stdout)
        found, source = module["Sum"], module["Dir"]
    except (ValueError, KeyError) as error:
        raise NoPrometheus(f"`go mod download` failed: {answer.stdout}{answer.stderr}") from error
    if found != MODULE_SUM:
        raise NoPrometheus(f"the Go module {MODULE}@{VERSION} has the hash {found}, not {MODULE_SUM}; it is not built")
    partial = target.with_suffix(f".{os.getpid()}")
    build = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(partial), f"./cmd/{name}"]
    done = subprocess.run(build, env=environ, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoPrometheus(f"`go build` failed: {done.stderr[-1_000:]}")
    partial.replace(target)


if __name__ == "__main__":
    try:
        for wanted in ("promtool", "prometheus"):
            print(f"{wanted}:", program(wanted, Settings.read(os.environ)))
    except NoPrometheus as error:
        sys.exit(str(error))
