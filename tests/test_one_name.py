"""Everything of ours is imported below `plansurvive`: nothing of a user's is in our way, nor ours in theirs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts import shape

ROOT = Path(__file__).resolve().parent.parent
NAME = ROOT / "plansurvive"
OWN = ("__init__.py", "__main__.py", "py.typed")
"""What is in plansurvive/ itself."""
LINKED = sorted(path.name for path in NAME.iterdir() if path.is_symlink())
"""What it links to: our packages and worker.py."""
NOT_SHIPPED = {"benchmarks", "plansurvive"}

REFUSING = """
import importlib, pkgutil, sys

class Refused:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {linked!r}:
            raise ImportError(f"{{name}} is imported without plansurvive")

sys.meta_path.insert(0, Refused())
import plansurvive

def each(path, prefix):
    for found in pkgutil.iter_modules(path, prefix):
        if not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            if found.ispkg:
                yield from each(module.__path__, f"{{found.name}}.")
            yield module.__file__

print(*each(plansurvive.__path__[-1:], "plansurvive."), sep="\\n")
{more}
"""
USER = {
    "plans/__init__.py": "MINE = 'plans'",
    "runtime/__init__.py": "MINE = 'runtime'",
    "client/__init__.py": "MINE = 'client'",
    "worker.py": "MINE = 'worker'",
    "activities/__init__.py": "",
    "activities/payment.py": """
from temporalio import activity

@activity.defn
async def charge(order: str) -> str:
    return f"{order} is paid"
""",
    "workflows/__init__.py": "",
    "workflows/order.py": """
from datetime import timedelta
from temporalio import workflow
import activities.payment as payment
from plansurvive import run_plan

@workflow.defn
class Order:
    @workflow.run
    async def run(self, order: str) -> list:
        paid = await workflow.execute_activity(payment.charge, order, start_to_close_timeout=timedelta(seconds=10))
        plan = {"steps": [{"id": "note", "tool": "write_file", "args": {"path": f"{order}.txt", "content": paid}}]}
        ended = await run_plan(plan, plan_id=f"confirm-{workflow.info().workflow_id}")
        return [paid, ended.summary.status.value]
""",
    "main.py": """
import asyncio, os, sys, uuid
import client, plans, runtime, worker
import activities.payment as payment
from temporalio.client import Client
from temporalio.worker import Worker
import workflows.order as orders
import plansurvive
from plansurvive import PlansPlugin, Settings

async def main():
    settings, name = Settings.read(os.environ), uuid.uuid4().hex
    connected = await Client.connect(os.environ["TEMPORAL_ADDRESS"], plugins=[PlansPlugin(settings)])
    async with Worker(connected, task_queue=name, workflows=[orders.Order], activities=[payment.charge]):
        ended = await connected.execute_workflow("Order", "17", id=name, task_queue=name)
    print(plansurvive.__path__[-1], *ended, plans.MINE, runtime.MINE, client.MINE, worker.MINE, sep="\\n", flush=True)
    os._exit(0)

asyncio.run(main())
""",
}
"""A repository with packages named as ours, and a worker of its own with our plugin."""
BESIDE = ["17 is paid", "completed", "plans", "runtime", "client", "worker"]
"""What it prints, after where it has found us."""


def beside(python: Path, environ: dict[str, str], folder: Path, *more: str) -> list[str]:
    """What the user's repository prints when it runs with this interpreter. `more`: directories of PYTHONPATH."""
    for name, text in USER.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    given = environ | {"PYTHONPATH": os.pathsep.join(more)}
    done = subprocess.run(
        [str(python), "main.py"], cwd=folder, env=given, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def importing(more: str = "") -> subprocess.CompletedProcess[str]:
    """A process that imports each of our modules and refuses imports that do not name plansurvive."""
    names = {name.removesuffix(".py") for name in LINKED}
    program = REFUSING.format(linked=names, more=more)
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_links_are_those_of_all_our_packages() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - NOT_SHIPPED
    assert packages >= {"plans", "runtime", "activities", "workflows", "client", "features", "apps"}
    assert set(LINKED) == packages | {"worker.py"}
    assert {(NAME / name).readlink() for name in LINKED} == {Path("..", name) for name in LINKED}
    assert {path.name for path in NAME.iterdir() if path.name != "__pycache__"} == {*LINKED, *OWN}


def test_what_names_our_packages_names_all_of_them() -> None:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    packages = {name for name in LINKED if not name.endswith(".py")}
    own = {f"plansurvive/{name}" for name in OWN}
    wheel, sdist = (project["hatch"]["build"]["targets"][name] for name in ("wheel", "sdist"))
    assert set(wheel["only-include"]) == packages | own
    assert wheel["sources"] == {name: f"plansurvive/{name}" for name in packages}
    assert wheel["force-include"] == {"worker.py": "plansurvive/worker.py"}
    assert set(sdist["only-include"]) == packages | own | {"worker.py", "examples", "tests"}
    banned = project["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    assert set(banned) == {name.removesuffix(".py") for name in LINKED}
    assert set(project["coverage"]["run"]["source"]) == packages
    assert set(shape.PACKAGES) == packages, "else its rules hold of what it does not read"
    copied = set(re.findall(r"^COPY (\S+) \./", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    assert copied == {*LINKED, "plansurvive"}
    assert {f"!{name}" for name in copied} <= set((ROOT / ".dockerignore").read_text().split())


@pytest.mark.slow
def test_every_module_imports_where_the_old_names_are_refused() -> None:
    done = importing()
    assert done.returncode == 0, done.stderr
    files = {path for name in LINKED for path in [ROOT / name, *(ROOT / name).rglob("*.py")] if path.suffix == ".py"}
    assert {Path(line) for line in done.stdout.split()} == {path for path in files if path.name != "__main__.py"}


@pytest.mark.slow
def test_an_import_by_an_old_name_is_refused() -> None:
    done = importing("import plans.errors")
    assert "plans is imported without plansurvive" in done.stderr


@pytest.mark.slow
def test_a_users_packages_are_beside_the_tree(environ: dict[str, str], tmp_path: Path) -> None:
    assert beside(Path(sys.executable), environ, tmp_path, str(ROOT)) == [str(NAME), *BESIDE]
