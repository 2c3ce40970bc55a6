"""The wheel: what is in it, its types, and a worker that runs from it without the libraries of the extras."""

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

from tests.test_one_name import BESIDE, LINKED, OWN, ROOT, beside

EXTRA = ("textual", "starlette", "uvicorn", "jinja2", "mcp", "boto3", "apprise")
"""Libraries that only extras bring."""
SCRIPT = """
import asyncio
import os
import sys

from plansurvive import Options, connect, runs


async def main() -> None:
    here = await connect(say=print)
    client = here.client
    step = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "from a wheel"}}
    started = await runs.start(client, {"steps": [step]}, options=Options(), queue=here.settings.task_queue)
    plan: str = started.plan_id
    summary = await runs.wait(client, plan)
    print(summary.status.value)


asyncio.run(main())
sys.stdout.flush()
os._exit(0)
"""
"""What a user's script does; it has every type that mypy asks for."""
TOOL = """
from plansurvive import tool


@tool
async def greet(name: str) -> str:
    '''Greet somebody.

    Args:
        name: Who.

    Returns:
        The greeting.
    '''
    return f"Hello {name}"
"""
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
    """Below one name, byte for byte as they are in the tree; the mark that it is typed among them."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        found = {name: archive.read(name) for name in names}
    linked = [ROOT / name for name in LINKED]
    files = [path for folder in linked for path in ([folder] if folder.is_file() else folder.rglob("*"))]
    tree = {f"plansurvive/{path.relative_to(ROOT).as_posix()}": path for path in files}
    tree |= {f"plansurvive/{name}": ROOT / "plansurvive" / name for name in OWN}
    assert found == {
        name: path.read_bytes() for name, path in tree.items() if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name.count("/") for name in found} > {1, 2, 3}, "sub-packages are in it"


def test_its_version_is_asked_for_by_the_name_it_is_installed_under(wheel: Path) -> None:
    assert wheel.name.startswith("plansurvive-")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        scripts = archive.read(name).decode()
        assert "plan = plansurvive.client.cli:main" in scripts
        assert "plansurvive = plansurvive.client.cli:main" in scripts, "what `uvx plansurvive` runs"


def test_pages_screens_and_stores_are_extras_and_all_has_them(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        text = archive.read(name).decode()
    asked = [row.removeprefix("Requires-Dist: ") for row in text.splitlines() if row.startswith("Requires-Dist: ")]
    for library in EXTRA:
        rows = [row for row in asked if row.startswith(library)]
        assert rows, library
        assert all("extra == " in row for row in rows), rows
        assert any("extra == 'all'" in row for row in rows), rows
    extras = {row.removeprefix("Provides-Extra: ") for row in text.splitlines() if row.startswith("Provides-Extra: ")}
    assert extras == {"web", "acp", "mcp", "review", "s3", "gcs", "telemetry", "notify", "all", "dev"}


@pytest.mark.slow
def test_a_script_sees_the_types_of_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    python = _environment(tmp_path / "env", shared=True)
    packages = _installed(wheel, python)
    assert _mypy(python, SCRIPT, tmp_path) == ""
    assert 'expression has type "str", variable has type "int"' in _mypy(python, MISTAKE, tmp_path)
    (packages / "plansurvive" / "py.typed").unlink()
    assert "module is installed, but missing library stubs or py.typed marker" in _mypy(python, SCRIPT, tmp_path)


@pytest.mark.slow
async def test_a_worker_a_script_and_the_commands_run_from_a_wheel_without_extras(
    wheel: Path, temporal_client: Client, environ: dict[str, str], workspace: Path, tmp_path: Path
) -> None:
    """Everything is installed into an empty environment from the package index, as a user would."""
    python = _environment(tmp_path / "env", shared=False)
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    missing = f"import importlib.util as u; print([name for name in {EXTRA} if u.find_spec(name)])"
    assert _run(python, "-I", "-c", missing) == "[]\n"
    bare = {name: value for name, value in environ.items() if name != "PYTHONPATH"} | {"PLANS_AUTO_WORKER": "off"}
    bare["PATH"] = f"{python.parent}:{os.environ['PATH']}"
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "mcp.toml").write_text('[servers.time]\ncommand = "cat"\n')
    pipe = asyncio.subprocess.PIPE
    worker = await asyncio.create_subprocess_exec(
        *(str(python), "-m", "plansurvive.worker"), cwd=tmp_path, stdout=pipe, stderr=asyncio.subprocess.STDOUT,
        env=bare | {"PLANS_MCP": str(tmp_path / "mcp.toml")},
    )  # fmt: skip
    try:
        script = await asyncio.create_subprocess_exec(
            *(str(python), "script.py"), env=bare, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await script.communicate()
        assert out.decode().splitlines()[-1:] == ["completed"]
        assert (workspace / "a.txt").read_text() == "from a wheel"
        worker.send_signal(signal.SIGTERM)
        told, _ = await worker.communicate()
        assert worker.returncode == 0
        assert (
            "No module named 'mcp'; install it and start the worker again; run: pip install 'plansurvive[mcp]'"
            in told.decode()
        )
    finally:
        if worker.returncode is None:
            worker.kill()
            await worker.wait()

    def said(*command: str, program: str = "plan", **more: str) -> subprocess.CompletedProcess[str]:
        whole = [str(python.with_name(program)), *command]
        return subprocess.run(whole, env=bare | more, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "completed" in said("list").stdout
    (tmp_path / "agents.toml").write_text('[agents.a]\ncommand = ["cat"]\n')
    (tmp_path / "notify.toml").write_text('[targets.a]\napprise = "json://127.0.0.1:9"\n')
    files = {name: str(tmp_path / f"{name[6:].lower()}.toml") for name in ("PLANS_MCP", "PLANS_AGENTS", "PLANS_NOTIFY")}
    found = said("doctor", **files, PLANS_OTEL="on", PLANS_STORAGE="s3://plans").stdout
    for name in ("acp", "mcp", "notify", "telemetry", "s3"):
        assert f"pip install 'plansurvive[{name}]'" in found, found
    assert "none; not installed: acp, gcs, mcp, notify, review, s3, telemetry, web; run: " in found
    for name in ("web", "mcp"):
        wrong = said(name)
        assert (wrong.returncode, wrong.stdout) == (2, "")
        assert f"pip install 'plansurvive[{name}]'" in wrong.stderr, wrong.stderr
        assert f"Not installed: pip install 'plansurvive[{name}]'" in said("--help").stdout
    assert said("--version").stdout == said("--version", program="plansurvive").stdout


@pytest.mark.sampled
@pytest.mark.slow
def test_a_users_packages_are_beside_an_installed_wheel(wheel: Path, environ: dict[str, str], tmp_path: Path) -> None:
    python = _environment(tmp_path / "env", shared=True)
    packages = _installed(wheel, python)
    assert beside(python, environ, tmp_path / "user") == [str(packages / "plansurvive"), *BESIDE]
    asked = "from plansurvive.runtime.base.code_place import IMPORTED_FROM; print(IMPORTED_FROM)"
    assert _run(python, "-P", "-c", asked) == f"{packages}\n", "what a command may not change, and a service starts in"


@pytest.mark.slow
def test_a_worker_of_a_wheel_finds_a_users_tools_in_a_package_named_as_ours(wheel: Path, tmp_path: Path) -> None:
    python = _environment(tmp_path / "env", shared=True)
    _installed(wheel, python)
    tools = tmp_path / "user" / "plans"
    tools.mkdir(parents=True)
    (tools / "tools.py").write_text(TOOL)
    asked = "from plansurvive.runtime.background_worker import worker_command; print(*worker_command(), sep='\\n')"
    command = _run(python, "-P", "-c", asked).splitlines()
    environ = {
        "PLANS_TOOLS": "plans.tools",
        "PYTHONPATH": str(tools.parent),
        "TEMPORAL_ADDRESS": "127.0.0.1:9",
        "PLANS_STATE_DIR": str(tmp_path / "state"),
        "PATH": os.environ["PATH"],
    }

    def said(*command: str) -> str:
        return subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False).stderr

    assert "NOT_CONNECTED" in said(*command), "it has loaded its tools, and looks for the server"
    assert "NOT_CONNECTED" in said(*command, "--processes", "2")
    assert "BAD_SETTING" in said(*(word for word in command if word != "-P")), "the control: ours hides the user's"


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
