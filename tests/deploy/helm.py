"""Helm, built once from its Go module and kept with the other downloaded programs, and what it makes of our chart."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plansurvive.runtime.settings import Settings

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "deploy" / "helm" / "plans"
MODULE, VERSION = "helm.sh/helm/v3/cmd/helm", "v3.18.6"
KUBERNETES = "1.31.0"
"""The version that the chart is rendered for."""


@cache
def helm() -> str | None:
    """The program, or None where it is neither installed nor can be built (no Go)."""
    if found := shutil.which("helm"):
        return found
    folder = Settings.read(os.environ).cache_dir / f"helm-{VERSION}"
    if not (folder / "helm").exists():
        if shutil.which("go") is None:
            return None
        environ = {**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0", "GOFLAGS": ""}
        subprocess.run(["go", "install", f"{MODULE}@{VERSION}"], env=environ, check=True, timeout=1_500)
    return str(folder / "helm")


def run(*arguments: str, values: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """A command of Helm for our chart with these values on its standard input."""
    command = [str(helm()), *arguments, "--values", "-"]
    return subprocess.run(command, input=yaml.safe_dump(dict(values)), capture_output=True, text=True, timeout=120)


def rendered(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The objects that the chart makes of these values."""
    done = run("template", "plans", str(CHART), "--kube-version", KUBERNETES, values=values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]
