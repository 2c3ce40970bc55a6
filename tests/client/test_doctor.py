"""`plan doctor`: each thing that is missing gets its finding, and says what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.sandbox import landlock
from plansurvive.activities.workspace.atomic_swap import is_supported
from plansurvive.activities.workspace.effect_log import EFFECTS, Effect, EffectLog
from plansurvive.client.doctor import Finding, Verdict, examine
from plansurvive.runtime.search_attributes import ensure, known
from plansurvive.runtime.server import SEARCH_ATTRIBUTES
from plansurvive.runtime.temporal_binary import PINNED
from tests.kit.lacking import require_sandbox


def by_subject(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in findings}


@pytest.fixture
def alone(state_dir: Path, caches: dict[str, str]) -> dict[str, str]:
    """An environment in which no server runs."""
    return {
        **caches,
        "PLANS_STATE_DIR": str(state_dir),
        "PLANS_SERVER": "embedded",
        "TEMPORAL_CONFIG_FILE": os.devnull,
    }


async def test_all_is_good_where_a_worker_listens(environ: dict[str, str], worker: Worker, queue: str) -> None:
    found = by_subject(await examine(environ))
    assert {name for name, finding in found.items() if finding.verdict is Verdict.BAD} == set()
    assert found["server"].text.startswith(environ["TEMPORAL_ADDRESS"])
    assert found["search"].verdict is Verdict.GOOD
    assert "read_file" in found["tools"].text


async def test_it_says_whether_commands_are_traced(alone: dict[str, str]) -> None:
    require_sandbox("bwrap")
    assert by_subject(await examine(alone))["tracing"].text.startswith("commands are traced")
    assert "PLANS_TRACE" in by_subject(await examine(alone | {"PLANS_TRACE": "off"}))["tracing"].text
    if os.geteuid() != 0:
        unsafe = by_subject(await examine(alone | {"PLANS_SANDBOX": "off"}))["tracing"]
        assert unsafe.verdict is Verdict.WARNING


async def test_a_queue_nobody_listens_to_is_a_warning(environ: dict[str, str]) -> None:
    found = by_subject(await examine(environ | {"PLANS_AUTO_WORKER": "off"}))
    assert found["worker"].verdict is Verdict.WARNING
    assert "plan up" in found["worker"].text


async def test_a_bad_setting_ends_the_examination(environ: dict[str, str]) -> None:
    found = by_subject(await examine(environ | {"PLANS_GRACE": "soon"}))
    assert found["settings"].verdict is Verdict.BAD
    assert "PLANS_GRACE" in found["settings"].text
    assert "server" not in found


async def test_a_server_that_is_down_is_bad_and_named(environ: dict[str, str]) -> None:
    found = by_subject(await examine(environ | {"TEMPORAL_ADDRESS": "127.0.0.1:9"}))
    assert found["server"].verdict is Verdict.BAD
    assert "127.0.0.1:9" in found["server"].text


async def test_tools_that_cannot_be_used_are_bad_and_named(alone: dict[str, str]) -> None:
    found = by_subject(await examine(alone | {"PLANS_TOOLS": "no.such.module"}))
    assert found["tools"].verdict is Verdict.BAD
    assert "no.such.module" in found["tools"].text


async def test_what_only_some_settings_need_is_looked_at_only_with_them(alone: dict[str, str], state_dir: Path) -> None:
    subjects = {"storage", "notifications", "tool servers", "traces"}
    found = by_subject(await examine(alone))
    assert not subjects & found.keys()
    assert found["extras"].text.startswith("all installed: acp, gcs, ")
    state_dir.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("notify.toml", '[targets.team]\napprise = "env:NO_SUCH"\n'),
        ("mcp.toml", '[servers.time]\ncommand = "cat"\n'),
    ):
        (state_dir / name).write_text(text)
        (state_dir / name).chmod(0o600)
    found = by_subject(await examine(alone | {"PLANS_STORAGE": "s3://plans", "PLANS_OTEL": "on"}))
    assert {name for name in subjects if found[name].verdict is Verdict.GOOD} == subjects - {"notifications"}
    assert found["storage"].text == "s3://plans"
    assert found["tool servers"].text == "mcp.toml: time"
    assert found["notifications"].verdict is Verdict.WARNING
    assert "team: " in found["notifications"].text
    assert "NO_SUCH" in found["notifications"].text
    (state_dir / "mcp.toml").write_text("[servers.time]")
    assert by_subject(await examine(alone))["tool servers"].verdict is Verdict.BAD


async def test_nothing_is_started_by_looking(alone: dict[str, str], state_dir: Path) -> None:
    found = by_subject(await examine(alone))
    assert found["server"].text.startswith("not running; the first plan")
    assert list(state_dir.iterdir()) == []


async def test_a_log_of_effects_that_cannot_be_used_is_bad(alone: dict[str, str], state_dir: Path) -> None:
    assert by_subject(await examine(alone))["effects"].verdict is Verdict.GOOD
    log = EffectLog(state_dir / EFFECTS)
    log.begin(Effect("run/s", "write"))
    log.close()
    assert by_subject(await examine(alone))["effects"].text.endswith("log.db")
    (state_dir / EFFECTS / "log.db").write_bytes(b"no database " * 1_000)
    found = by_subject(await examine(alone))["effects"]
    assert found.verdict is Verdict.BAD
    assert "restore it from a backup" in found.text


async def test_it_is_said_whether_saves_of_others_are_safe(alone: dict[str, str], workspace: Path) -> None:
    found = by_subject(await examine(alone | {"PLANS_WORKSPACE": str(workspace)}))["saving"]
    assert found.verdict is (Verdict.GOOD if is_supported(workspace) else Verdict.WARNING)
    assert list(workspace.iterdir()) == []


async def test_without_a_program_the_ways_to_one_are_named(
    alone: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = by_subject(await examine(alone | {"PLANS_CACHE_DIR": str(tmp_path / "cache")}))
    assert found["server"].verdict is Verdict.WARNING
    assert f"downloads `temporal` {PINNED.version}" in found["server"].text
    assert "on PATH, or set TEMPORAL_ADDRESS" in found["server"].text


async def test_our_search_attributes_are_known_to_a_server_of_ours(temporal_client: Client) -> None:
    assert await known(temporal_client) == await ensure(temporal_client) == set(SEARCH_ATTRIBUTES)


async def test_weaknesses_have_codes_and_plans_run_in_spite_of_them(alone: dict[str, str], state_dir: Path) -> None:
    state_dir.chmod(0o755)
    weak = {"PLANS_SANDBOX": "off"}
    found = {finding.code: finding for finding in await examine(alone | weak) if finding.code}
    assert {"STATE_READABLE", "SANDBOX_OFF"} <= found.keys()
    assert f"chmod 700 {state_dir}" in found["STATE_READABLE"].text
    assert {finding.verdict for finding in found.values()} == {Verdict.WARNING}
    state_dir.chmod(0o700)
    codes = {finding.code for finding in await examine(alone | {"PLANS_SANDBOX": "landlock"})}
    assert "STATE_READABLE" not in codes
    assert "SANDBOX_OFF" not in codes


@pytest.mark.skipif(not landlock.abi(), reason="this kernel has no Landlock")
async def test_the_level_of_the_sandbox_and_its_network_are_weaknesses(alone: dict[str, str]) -> None:
    weak = {"PLANS_SANDBOX": "landlock", "PLANS_SANDBOX_NETWORK": "on"}
    codes = {finding.code for finding in await examine(alone | weak)}
    assert {"SANDBOX_LEVEL_1", "NETWORK_ON"} <= codes


async def test_root_is_told_to_run_plans_as_somebody_else(alone: dict[str, str]) -> None:
    found = by_subject(await examine(alone))["user"]
    assert (found.code == "ROOT_WORKER") == (os.geteuid() == 0)
    assert "useradd" in found.text or os.geteuid() != 0


async def test_strict_approvals_are_told_from_normal_ones(alone: dict[str, str]) -> None:
    assert "PLANS_APPROVALS=strict" in by_subject(await examine(alone))["approvals"].text
    assert by_subject(await examine(alone | {"PLANS_APPROVALS": "strict"}))["approvals"].text.startswith("strict")


async def test_a_server_elsewhere_without_encryption_is_a_weakness(environ: dict[str, str]) -> None:
    assert "SERVER_WITHOUT_TLS" not in {finding.code for finding in await examine(environ)}
    elsewhere = environ["TEMPORAL_ADDRESS"].replace("127.0.0.1", "127.1")  # no name that we know as this machine's
    found = {finding.code: finding.text for finding in await examine(environ | {"TEMPORAL_ADDRESS": elsewhere})}
    assert "TEMPORAL_TLS=true" in found["SERVER_WITHOUT_TLS"]


async def test_a_workspace_that_no_plan_may_have_is_told(alone: dict[str, str], state_dir: Path) -> None:
    found = by_subject(await examine(alone | {"PLANS_WORKSPACE": str(state_dir)}))["workspace"]
    assert (found.verdict, "is never a workspace" in found.text) == (Verdict.BAD, True)


@pytest.mark.parametrize(
    ("abi", "open_", "guarded"),
    [
        (5, ["signals"], ["files"]),
        (4, ["signals", "device"], ["length"]),
        (1, ["moves", "length", "device", "signals"], []),
    ],
)
def test_an_old_landlock_is_told_by_what_it_does_not_guard(abi: int, open_: list[str], guarded: list[str]) -> None:
    text = landlock.gaps(abi)
    assert [word for word in open_ if word not in text] == []
    assert [word for word in guarded if word in text] == []
