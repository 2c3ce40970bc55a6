"""The services of docker-compose.yml: healthy, without rights, bounded, and reached from this machine only."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.compose.stack import LASTING, ONCE, OWNER, PROXY_HEADER, Stack

SERVICES = (*LASTING, *ONCE)
MAY_WRITE = {"postgresql": {"/var/lib/postgresql/data"}, "worker": {"/workspace", "/var/lib/plans"}}
MAY_WRITE["web"] = MAY_WRITE["worker"]


async def test_docker_compose_ps_says_that_every_service_is_healthy(stack: Stack) -> None:
    rows = [json.loads(row) for row in stack.compose("ps", "--format", "json").splitlines()]
    assert {row["Service"]: row["Health"] for row in rows} == dict.fromkeys(LASTING, "healthy")
    assert stack.unhealthy() == {}


@pytest.mark.parametrize("service", LASTING)
async def test_no_process_of_a_service_is_root_or_has_a_capability(stack: Stack, service: str) -> None:
    pid = stack.container(service)["State"]["Pid"]
    rows = stack.engine.run("top", stack.container(service)["Id"], "-eo", "pid,uid").splitlines()[1:]
    assert str(pid) in {row.split()[0] for row in rows}
    assert "0" not in {row.split()[1] for row in rows}
    inside = stack.compose("exec", "-T", service, "cat", "/proc/self/status")
    status = dict(row.split(":\t", 1) for row in inside.splitlines() if ":\t" in row)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_is_bounded_and_can_write_to_its_data_only(stack: Stack, service: str) -> None:
    host: dict[str, Any] = stack.container(service)["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["Memory"] > 0
    assert host["PidsLimit"] > 0
    assert not host["Privileged"]
    mounts = stack.container(service)["Mounts"]
    assert {mount["Destination"] for mount in mounts if mount["RW"] and mount["Type"] != "tmpfs"} == MAY_WRITE.get(
        service, set()
    )


@pytest.mark.parametrize("service", LASTING)
async def test_the_root_file_system_of_a_service_cannot_be_written_to(stack: Stack, service: str) -> None:
    for folder in ("/", "/etc", "/usr/bin", "/var/lib"):
        done = stack.engine.attempt("compose", "exec", "-T", service, "touch", f"{folder}/new", **stack.environ)
        assert done.returncode != 0
        assert b"Read-only file system" in done.stderr + done.stdout


async def test_commands_of_plans_are_confined_in_the_container_as_well(stack: Stack, figures: list[str]) -> None:
    look = "import json; from plansurvive.activities.sandbox.sandbox import missing; print(json.dumps(missing()))"
    lacking = json.loads(stack.compose("exec", "-T", "worker", "python", "-c", look))
    assert set(lacking) <= {"bwrap"}, lacking
    figures.append(f"commands run at sandbox level {1 if lacking else 2}")


async def test_services_are_reached_from_this_machine_only(stack: Stack) -> None:
    published = {
        service: [place["HostIp"] for places in ports.values() for place in places or []]
        for service in LASTING
        if (ports := stack.container(service)["NetworkSettings"]["Ports"])
    }
    assert {service: places for service, places in published.items() if places} == {
        "temporal": ["127.0.0.1"], "guard": ["127.0.0.1"], "web": ["127.0.0.1"],
    }  # fmt: skip


async def test_the_temporal_ui_answers_through_the_guard_to_this_machine_only(stack: Stack) -> None:
    place = f"127.0.0.1:{stack.ports['UI_PORT']}"
    status, text = _get(f"http://{place}/", {})
    assert (status, "<html" in text.lower()) == (200, True)
    status, text = _get(f"http://{place}/api/v1/namespaces", {})
    assert "default" in [each["namespaceInfo"]["name"] for each in json.loads(text)["namespaces"]]
    assert _get(f"http://{place}/", {"Host": "rebound.example"})[0] == 403


async def test_the_web_page_lets_those_in_whom_the_proxy_names(stack: Stack) -> None:
    page, host = f"http://127.0.0.1:{stack.ports['WEB_PORT']}/", {"Host": "plans.example.org"}
    assert _get(page, host | {PROXY_HEADER: "ann@example.org"})[0] == 200
    assert _get(page, host)[0] in (401, 403)


async def test_the_state_directory_is_private_and_of_the_worker(stack: Stack) -> None:
    assert {path.lstat().st_uid for path in (stack.folder / "state").rglob("*")} == {OWNER}
    assert (stack.folder / "state").stat().st_mode & 0o077 == 0


def _get(url: str, headers: dict[str, str]) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
