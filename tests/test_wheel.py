"""The wheel: what is in it, its types, and a worker that runs from it without the libraries of the command line."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from temporalio.client import Client

ROOT = Path(__file__).parent.parent
PACKAGES = ("plans", "runtime", "activities", "workflows", "client")
EXTRA = ("typer", "rich", "textual", "starlette", "uvicorn", "jinja2", "watchfiles")
"""The libraries of the extra `cli`."""
SCRIPT = """
import asyncio
import os
import sys

from client import runs
from plans.run import Options
from runtime.connect import reach
from runtime.settings import Settings


async def main() -> None:
    settings = Settings.read(os.environ)
    client = (await reach(settings, print)).client
    step = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "from a wheel"}}
    started = await runs.start(client, {"steps": [step]}, options=Options(), queue=settings.task_queue)
    plan: str = started.plan_id
    summary = await runs.wait(client, plan)
    print(summary.status.value)


asyncio.run(main())
sys.stdout.flush()
os._exit(0)
"""
"""What a user's script does; it has every type that mypy asks for."""
MISTAKE = SCRIPT.replace("plan: str = started.plan_id", "plan: int = started.plan_id")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "--wheel-dir", str(folder)], cwd=folder, check=True, capture_output=True, text=True)
    (found,) = folder.glob("*.whl")
    return found


def test_it_holds_every_module_and_nothing_of_the_tests(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()}
    files = {path for path in files if "__pycache__" not in path.parts and path.name != "py.typed"}
    assert {name for name in names if not name.endswith("py.typed")} == {
        "worker.py",
        *(path.relative_to(ROOT).as_posix() for path in files),
    }
    assert {name.count("/") for name in names} > {0, 1, 2}, "sub-packages are in it"


def test_every_package_says_that_it_is_typed(wheel: Path) -> None:
    """PEP 561: a marker in a top-level package stands for all packages inside."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_the_command_line_is_an_extra(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        asked = [row for row in archive.read(name).decode().splitlines() if row.startswith("Requires-Dist: ")]
    for library in EXTRA:
        rows = [row for row in asked if row.replace("-", "_").startswith(f"Requires_Dist: {library}".replace("-", "_"))]
        assert rows, library
        assert all("extra == 'cli'" in row or "extra == 'web'" in row for row in rows), rows


@pytest.mark.slow
def test_a_script_sees_the_types_of_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    python = _environment(tmp_path / "env", shared=True)
    packages = _installed(wheel, python)
    assert _mypy(python, SCRIPT, tmp_path) == ""
    assert 'expression has type "str", variable has type "int"' in _mypy(python, MISTAKE, tmp_path)
    for package in PACKAGES:
        (packages / package / "py.typed").unlink()
    assert "module is installed, but missing library stubs or py.typed marker" in _mypy(python, SCRIPT, tmp_path)


@pytest.mark.slow
async def test_a_worker_and_a_script_run_from_a_wheel_without_the_extra(
    wheel: Path, temporal_client: Client, environ: dict[str, str], workspace: Path, tmp_path: Path
) -> None:
    """Everything is installed into an empty environment from the package index, as a user would."""
    python = _environment(tmp_path / "env", shared=False)
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    missing = f"import importlib.util as u; print([name for name in {EXTRA} if u.find_spec(name)])"
    assert _run(python, "-I", "-c", missing) == "[]\n"
    bare = {name: value for name, value in environ.items() if name != "PYTHONPATH"} | {"PLANS_AUTO_WORKER": "off"}
    (tmp_path / "script.py").write_text(SCRIPT)
    worker = await asyncio.create_subprocess_exec(
        *(str(python), "-m", "worker"), env=bare, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    try:
        script = await asyncio.create_subprocess_exec(
            *(str(python), "script.py"), env=bare, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await script.communicate()
        assert out.decode().splitlines()[-1:] == ["completed"]
        assert (workspace / "a.txt").read_text() == "from a wheel"
        worker.send_signal(signal.SIGTERM)
        assert await worker.wait() == 0
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()
    plan = subprocess.run([python.with_name("plan")], env=bare, capture_output=True, text=True, check=False)  # noqa: ASYNC221
    assert plan.returncode == 2
    assert plan.stderr.endswith("pip install 'plans-that-survive[cli]'\n")


def _environment(folder: Path, *, shared: bool) -> Path:
    """A virtual environment; its interpreter. `shared`: with the libraries of this one, but not with this project."""
    _run(Path(sys.executable), "-m", "venv", *(["--without-pip"] if shared else []), str(folder))
    if shared:
        (_packages(folder) / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def _packages(folder: Path) -> Path:
    (found,) = folder.glob("lib/python*/site-packages")
    return found


def _installed(wheel: Path, python: Path) -> Path:
    packages = _packages(python.parent.parent)
    _run(Path(sys.executable), "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages), str(wheel))
    return packages


def _run(python: Path, *arguments: str) -> str:
    command = [str(python), *arguments]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


def _mypy(python: Path, script: str, folder: Path) -> str:
    """What `mypy --strict` says against a script; nothing when it is sound."""
    (folder / "typed.py").write_text(script)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--python-executable",
        str(python),
        "typed.py",
    ]
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return "" if done.returncode == 0 else done.stdout
