"""`plan secrets`: names, tools and places; never a value, also where one is wrong."""

from __future__ import annotations

from pathlib import Path

from tests.client.cli.command import plan
from tests.features.secrets.secret_files import private, write_secrets

VALUE = "never-Shown-7f3a"


async def test_secrets_are_listed_and_checked_without_their_values(tmp_path: Path, state_dir: Path) -> None:
    private(state_dir / "token", VALUE)
    write_secrets(
        state_dir,
        GOOD={"source": "file:token", "tools": ["http_request"], "hosts": ["*.example.org"], "models": True},
        SHELL={"source": f"command:cat {state_dir / 'token'}", "tools": ["run_command"]},
    )
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state_dir)}
    listed, checked = await plan(environ, "secrets", "list"), await plan(environ, "secrets", "check")
    assert listed.out.splitlines() == [
        "GOOD  from file:token, for http_request, to *.example.org, models may name it",
        "SHELL  from command:cat, for run_command",
    ]
    assert (checked.code, checked.out.count("can be read")) == (0, 2)
    [good, shell] = (await plan(environ, "secrets", "check", "--json")).json
    assert (good["problem"], shell["from"]) == (None, "command:cat")
    assert VALUE not in listed.out + checked.out


async def test_what_cannot_be_read_and_which_tools_there_are_not_is_said(tmp_path: Path, state_dir: Path) -> None:
    private(state_dir / "token", "short")
    write_secrets(
        state_dir,
        SHORT={"source": "file:token", "tools": ["run_command"]},
        UNSET={"source": "env:NOT_SET_HERE", "tools": ["run_comand"]},
    )
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state_dir)}
    checked = await plan(environ, "secrets", "check")
    assert checked.code == 1
    assert "SHORT is shorter than 8 characters" in checked.out
    assert "NOT_SET_HERE, which is not set" in checked.out
    assert "there is no tool 'run_comand'; did you mean 'run_command'?" in checked.out


async def test_a_bad_file_fails_every_command_that_reads_it_with_its_place(tmp_path: Path, state_dir: Path) -> None:
    private(state_dir / "secrets.toml", f"[secrets.A]\nfrom = '{VALUE}'\ntools = ['run_command']")
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state_dir)}
    for words in (("secrets", "list"), ("tools",)):
        ended = await plan(environ, *words)
        assert ended.code == 2
        assert "secrets.A.from: write env:NAME" in ended.err
        assert VALUE not in ended.out + ended.err


async def test_without_a_file_there_are_none(tmp_path: Path, state_dir: Path) -> None:
    ended = await plan({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state_dir)}, "secrets", "list")
    says = f"no secrets: {state_dir / 'secrets.toml'} does not exist; write [secrets.NAME] with `from`, `tools` and"
    assert (ended.code, " ".join(ended.out.split())) == (0, f"{says} `hosts` there, for each secret")
