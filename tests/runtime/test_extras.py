"""The line that installs an extra is one for the program that made the environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plansurvive.runtime.base.extras import install_line, lacking, present, pytest_lines

ALL = "plansurvive[acp,gcs,mcp,notify,review,s3,telemetry,web]"
"""All that is installed here."""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    (tmp_path / "it" / "bin").mkdir(parents=True)
    return tmp_path / "it"


def test_pipx_and_uv_are_given_the_extras_that_are_there_as_well(environment: Path) -> None:
    (environment / "pipx_metadata.json").touch()
    assert install_line("plansurvive[web]", environment) == f"pipx install --force '{ALL}'"
    assert install_line("other[x]", environment) == "pipx inject plansurvive 'other[x]'"
    (environment / "pipx_metadata.json").rename(environment / "uv-receipt.toml")
    assert install_line("plansurvive[web]", environment) == f"uv tool install '{ALL}'"
    assert install_line("other", environment) == f"uv tool install '{ALL}' --with other"


def test_what_uvx_runs_is_installed_for_good(tmp_path: Path) -> None:
    assert install_line("plansurvive[new]", tmp_path / "archive-v0" / "x1").startswith("uv tool install 'plansurvive[")
    assert install_line("plansurvive[new]", tmp_path / "archive" / "x1").startswith("/"), "the control"


def test_pip_is_called_by_its_path_unless_the_one_on_path_is_of_the_environment(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = environment / "bin" / "pip"
    pip.touch(mode=0o755)
    assert (
        install_line("plansurvive[web]", environment) == f"{environment}/bin/python -m pip install 'plansurvive[web]'"
    )
    monkeypatch.setenv("PATH", str(pip.parent))
    assert install_line("plansurvive[web]", environment) == "pip install 'plansurvive[web]'"


def test_an_environment_without_pip_is_filled_by_uv(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `uv venv` makes it: asked of an interpreter that has no pip."""
    (environment / "bin" / "uv").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(environment / "bin"))
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import extras; print(extras.install_line('plansurvive[web]'))"
    )
    folder = Path(sys.modules[install_line.__module__].__file__ or "").parent
    done = subprocess.run(
        [sys.executable, "-IS", "-c", program, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("uv pip install --python /")
    assert done.stdout.endswith("/bin/python 'plansurvive[web]'\n")


def test_pytest_is_run_where_we_are_installed(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = environment / "bin" / "python"
    own.touch(mode=0o755)
    assert pytest_lines("tests", environment) == [f"{own} -m pip install pytest", f"{own} -m pytest tests"]
    (environment / "pipx_metadata.json").touch()
    assert pytest_lines("tests", environment) == ["pipx inject plansurvive pytest", f"{own} -m pytest tests"]
    (environment / "pipx_metadata.json").rename(environment / "uv-receipt.toml")
    (line,) = pytest_lines("tests", environment)
    assert line == f"uv run --no-project --with '{ALL}' --with pytest python -m pytest tests"
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert pytest_lines("tests") == ["python -m pytest tests"]


def test_an_extra_is_there_if_all_its_libraries_are() -> None:
    assert present() == dict.fromkeys(("acp", "gcs", "mcp", "notify", "review", "s3", "telemetry", "web"), True)
    assert lacking("web") == lacking("of another program") == ""
