"""secrets.toml: what may be in it, where secrets come from at each moment, and which tools get them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plansurvive.features.secrets.permissions import allowed_to
from plansurvive.features.secrets.secrets_file import allowed, read_entries
from plansurvive.features.secrets.store import SecretStore
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import SettingError, Settings
from tests.features.secrets.secret_files import private, write_secrets
from tests.plans.building import spec

VALUE = "s3cret-Value-42"
TOOL = spec("own")


def store_in(directory: Path, environ: dict[str, str] | None = None, **entries: dict[str, Any]) -> SecretStore:
    write_secrets(directory, **entries)
    settings = Settings.read({"PLANS_SECRETS": str(directory / "secrets.toml")})
    return SecretStore(read_entries(settings), directory, environ or {})


def problem(directory: Path, text: str) -> str:
    path = private(directory / "secrets.toml", text)
    with pytest.raises(SettingError) as caught:
        read_entries(Settings.read({"PLANS_SECRETS": str(path)}))
    assert caught.value.code == "BAD_SETTING:PLANS_SECRETS"
    return caught.value.message


def test_a_secret_comes_from_a_variable_a_file_or_a_command(tmp_path: Path) -> None:
    private(tmp_path / "token", f"{VALUE}\n")
    store = store_in(
        tmp_path,
        {"MY_TOKEN": VALUE},
        A={"source": "env:MY_TOKEN", "tools": ["own"]},
        B={"source": "file:token", "tools": ["own"]},
        C={"source": f"command:cat {tmp_path / 'token'}", "tools": ["own"]},
    )
    assert store.values(["A", "B", "C"], TOOL) == dict.fromkeys("ABC", VALUE)
    assert store.seen == [VALUE]
    assert VALUE not in repr(store)


def test_the_value_is_that_of_the_moment_and_earlier_ones_stay_known(tmp_path: Path) -> None:
    file = private(tmp_path / "token", VALUE)
    store = store_in(tmp_path, A={"source": "file:token", "tools": ["own"]})
    assert store.values(["A"], TOOL) == {"A": VALUE}
    file.write_text(f"rotated-{VALUE}")
    assert store.values(["A"], TOOL) == {"A": f"rotated-{VALUE}"}
    assert store.seen == [VALUE, f"rotated-{VALUE}"]


@pytest.mark.parametrize(
    ("source", "text", "said"),
    [
        ("env:NOT_SET", None, "which is not set for the worker"),
        ("file:missing", None, "cannot be read: No such file"),
        ("file:token", "short", "shorter than 8 characters"),
        ("file:token", " \n", "is empty"),
        ("file:token", "with\0nul-characters", "is not text"),
        ("file:token", "x" * 70_000, "more than 65,536"),
        ("command:false", None, "ended with exit code 1"),
        ("command:/no/such/program", None, "did not run: FileNotFoundError"),
    ],
)
def test_what_is_no_secret_is_said_without_showing_it(tmp_path: Path, source: str, text: str | None, said: str) -> None:
    if text is not None:
        private(tmp_path / "token", text)
    store = store_in(tmp_path, A={"source": source, "tools": ["own"]})
    with pytest.raises(ToolError, match=said) as caught:
        store.values(["A"], TOOL)
    assert caught.value.code == "SECRET_MISSING"
    assert caught.value.retryable is source.startswith("command:")
    assert list(store.read_all()) == ["A"], "a start of a worker tells the same, and goes on"


def test_a_file_that_others_can_read_holds_no_secret(tmp_path: Path) -> None:
    private(tmp_path / "token", VALUE).chmod(0o644)
    store = store_in(tmp_path, A={"source": "file:token", "tools": ["own"]})
    with pytest.raises(ToolError, match=r"chmod 600"):
        store.values(["A"], TOOL)


def test_a_tool_that_is_not_named_gets_no_secret(tmp_path: Path) -> None:
    store = store_in(tmp_path, {"X": VALUE}, A={"source": "env:X", "tools": ["own"]})
    for names, tool in ((["A"], spec("other")), (["B"], TOOL)):
        with pytest.raises(ToolError) as caught:
            store.values(names, tool)
        assert caught.value.code == "SECRET_REFUSED"
    assert store.seen == []


def test_specs_say_which_secrets_a_tool_may_use(tmp_path: Path) -> None:
    entries = store_in(
        tmp_path,
        A={"source": "env:X", "tools": ["own", "http_request"], "hosts": ["*.example.org"], "models": True},
    ).entries
    found: ToolSpec = allowed(TOOL, entries)
    assert allowed_to(found)["A"].hosts == ["*.example.org"]
    assert allowed_to(found)["A"].models is True
    assert allowed_to(allowed(spec("other"), entries)) == {}
    assert allowed_to(allowed(spec("own", durable=True), entries)) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[secrets.A]\ntools = ['own']", "secrets.A.from"),
        ("[secrets.A]\nfrom = 'vault:x'\ntools = ['own']", "write env:NAME, file:PATH or command:"),
        ("[secrets.A]\nfrom = 'env:not a name'\ntools = ['own']", "write env:NAME"),
        ("[secrets.A]\nfrom = \"command:cat 'x\"\ntools = ['own']", "quotes of the command do not match"),
        ("[secrets.A]\nfrom = 'env:X'\ntools = []", "secrets.A.tools"),
        ("[secrets.A-B]\nfrom = 'env:X'\ntools = ['own']", "secrets.A-B"),
        ("[secrets.A]\nfrom = 'env:X'\ntools = ['http_request']", "say where http_request may send it"),
        ("[secrets.A]\nfrom = 'env:X'\ntools = ['own']\nhosts = ['a b']", "is not a host"),
        ("[secrets.A]\nfrom = 'env:X'\ntools = ['write_file']", "it keeps what it writes for `plan undo`"),
        ("[secrets.A]\nfrom = 'env:X'\ntools = ['agent']", "its arguments are kept with the plan"),
        ("[secrets.A]\nfrom = 'env:X'\ntools = ['run_python']", "use run_command and its `env`"),
        ("[secrets.A]\nfrom = 'env:X'\ntools = ['own']\nvalue = 'hunter22'", "secrets.A.value"),
        ("secrets = hunter22", "line 1: it is not TOML: a text needs quotes"),
        ("\n".join(f"[secrets.A{n}]\nfrom = 'env:X'\ntools = ['own']" for n in range(51)), "50"),
    ],
)
def test_a_bad_file_is_refused_with_the_place_and_no_value(tmp_path: Path, text: str, said: str) -> None:
    found = problem(tmp_path, text)
    assert said in found
    assert "hunter22" not in found


def test_a_file_that_others_may_change_is_refused(tmp_path: Path) -> None:
    path = write_secrets(tmp_path, A={"source": "env:X", "tools": ["own"]})
    path.chmod(0o666)
    with pytest.raises(PlanError, match="others may change it"):
        read_entries(Settings.read({"PLANS_SECRETS": str(path)}))


def test_no_file_is_no_secrets_unless_it_is_named(tmp_path: Path) -> None:
    assert read_entries(Settings.read({"PLANS_STATE_DIR": str(tmp_path)})) == {}
    with pytest.raises(SettingError, match="does not exist"):
        read_entries(Settings.read({"PLANS_SECRETS": str(tmp_path / "none.toml")}))
