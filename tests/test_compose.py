"""docker-compose.yml, Dockerfile and locks, as far as they can be judged without Docker.

That the same files work is shown by tests/compose, with Docker, and by tests/stack, without: it starts the same server
with docker/temporal.yaml, sets up the tables and the namespace with the same scripts, and runs a plan.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from plansurvive.runtime.browser_guard import BLOCKED_PORTS
from plansurvive.runtime.feature_settings import PREFIX
from plansurvive.runtime.server import CLOSED, FAST, HOST, SEARCH_ATTRIBUTES, free_ports
from plansurvive.runtime.service.fair_queues import FAIR
from plansurvive.runtime.settings import Settings, names
from plansurvive.runtime.temporal_binary import installed
from scripts.pin_images import pinned

ROOT = Path(__file__).parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SET_UP = {"schema", "namespace"}
BUILT = {"worker", "guard", "web"}
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_parts_are_there() -> None:
    assert set(SERVICES) == {"postgresql", "schema", "temporal", "namespace", "ui", "guard", "worker", "web"}


@pytest.mark.parametrize("name", sorted(set(SERVICES) - BUILT))
def test_every_image_has_a_full_version_and_a_digest_or_takes_the_one_that_is_pinned(name: str) -> None:
    image = SERVICES[name]["image"]
    assert re.fullmatch(
        r"[\w./-]+:\d+\.\d+(\.\d+)?(-[\w.-]+)?(@sha256:[0-9a-f]{64}|\$\{(TEMPORAL_\w+_DIGEST):\+@\$\{\4\}\})", image
    )
    assert "latest" not in image


@pytest.mark.parametrize("name", sorted(BUILT))
def test_our_own_image_is_built_here(name: str) -> None:
    is_page = name == "web"
    assert SERVICES[name]["build"] == ({"context": ".", "target": "web"} if is_page else ".")
    assert SERVICES[name]["image"] == f"plans-{'web' if is_page else 'worker'}:{PROJECT['version']}"


def test_the_page_is_for_teams_that_can_log_in_and_starts_only_when_it_is_asked_for() -> None:
    page = SERVICES["web"]
    assert page["profiles"] == ["web"]
    assert page["environment"]["PLANS_WEB_LISTEN"] == "0.0.0.0:7243"  # without a login, that is refused
    assert re.search(r"^FROM worker AS web$", DOCKERFILE, re.M)
    assert re.search(r"^FROM worker\n*\Z", DOCKERFILE, re.M)  # a build without a target is the worker's


def test_there_is_no_default_password() -> None:
    password = COMPOSE["services"]["postgresql"]["environment"]["POSTGRES_PASSWORD"]
    assert password == "${POSTGRES_PASSWORD:?write POSTGRES_PASSWORD=... into .env, or run make pin}"
    assert "POSTGRES_PASSWORD:-" not in (ROOT / "docker-compose.yml").read_text()


def test_the_server_is_the_version_everything_else_is_tested_with() -> None:
    assert SERVICES["temporal"]["image"].startswith("temporalio/server:1.29.1$")
    assert SERVICES["schema"]["image"].startswith("temporalio/admin-tools:1.29.1-")
    assert re.search(r"^ARG PYTHON=python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}$", DOCKERFILE, re.M)
    assert re.search(r"^FROM \$\{PYTHON\} AS worker$", DOCKERFILE, re.M)


def test_no_page_in_a_browser_reaches_the_ui_or_an_api_past_the_guard() -> None:
    ui, guard = SERVICES["ui"], SERVICES["guard"]
    port = ui["environment"]["TEMPORAL_UI_PORT"]
    assert int(port) in BLOCKED_PORTS
    assert "ports" not in ui
    assert guard["command"][-4:] == ["--listen", "0.0.0.0:8233", "--to", f"ui:{port}"]
    assert "httpPort:" not in (ROOT / "docker/temporal.yaml").read_text()
    dynamic = yaml.safe_load((ROOT / "docker/dynamicconfig.yaml").read_text())
    assert {key: dynamic[key][0]["value"] for key in CLOSED} == CLOSED


def test_pinning_adds_all_that_is_required_and_changes_nothing() -> None:
    compose, digest = (ROOT / "docker-compose.yml").read_text(), f"sha256:{'a' * 64}"
    asked: list[str] = []

    def look_up(image: str) -> str:
        asked.append(image)
        return digest

    text = pinned(compose, f"# mine\nTEMPORAL_UI_DIGEST={digest}\n", look_up)
    taken = {*re.findall(r"\$\{(\w+):\?", compose), *re.findall(r"\$\{(\w+_DIGEST):\+", compose)}
    given = dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
    assert set(given) == taken
    assert sorted(asked) == ["temporalio/admin-tools:1.29.1-tctl-1.18.4-cli-1.5.0", "temporalio/server:1.29.1"]
    assert len(given["POSTGRES_PASSWORD"]) == 32
    assert pinned(compose, text, look_up) == text
    assert pinned(compose, "", look_up) != pinned(compose, "", look_up)


def test_what_is_no_digest_is_not_pinned() -> None:
    with pytest.raises(ValueError, match="is no digest"):
        pinned((ROOT / "docker-compose.yml").read_text(), "", lambda _: "latest")


@pytest.mark.parametrize("name", sorted(set(SERVICES) - SET_UP))
def test_every_lasting_service_has_a_health_check_and_comes_back(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_each_waits_for_what_it_needs() -> None:
    def needs(name: str) -> dict[str, str]:
        return {other: rule["condition"] for other, rule in SERVICES[name]["depends_on"].items()}

    assert needs("schema") == {"postgresql": "service_healthy"}
    assert needs("temporal") == {"schema": "service_completed_successfully"}
    assert needs("namespace") == {"temporal": "service_healthy"}
    assert needs("ui") == needs("worker") == needs("web") == {"namespace": "service_completed_successfully"}
    assert needs("guard") == {"ui": "service_healthy"}


def test_ports_are_published_on_the_loopback_interface_only() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published == [
        "127.0.0.1:${TEMPORAL_PORT:-7233}:7233", "127.0.0.1:${UI_PORT:-8233}:8233", "127.0.0.1:${WEB_PORT:-7243}:7243",
    ]  # fmt: skip


def test_data_is_kept_in_volumes() -> None:
    assert set(COMPOSE["volumes"]) == {"postgresql", "workspace", "state"}
    assert SERVICES["postgresql"]["volumes"] == ["postgresql:/var/lib/postgresql/data"]
    assert SERVICES["worker"]["volumes"] == ["${WORKSPACE:-workspace}:/workspace", "${STATE:-state}:/var/lib/plans"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_process_has_rights(name: str) -> None:
    service = SERVICES[name]
    user = re.fullmatch(r"(?:\$\{RUN_AS:-)?(\d+):(\d+)\}?", service["user"])
    assert user
    assert 0 not in (int(user[1]), int(user[2]))
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "network_mode", "pid", "ipc"} & set(service)
    if name in BUILT:
        assert re.search(rf"^USER {user[1]}:{user[2]}$", DOCKERFILE, re.M)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_nothing_uses_all_memory_processes_or_disk_of_the_machine(name: str) -> None:
    service = SERVICES[name]
    assert re.fullmatch(r"(\$\{WORKER_MEMORY:-)?\d+[mg]\}?", service["mem_limit"])
    assert 0 < service["pids_limit"] <= 2048
    assert all("size=" in mount for mount in service["tmpfs"])
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_what_is_mounted_of_this_machine_is_read_only_unless_it_is_for_data(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source, target, *mode = re.split(r":(?!-)", volume)
        is_data = re.fullmatch(r"\$\{(WORKSPACE|STATE):-\w+\}|postgresql", source)
        assert is_data or mode == ["ro"], f"{name} may change {source} at {target}"


def test_an_image_brings_no_volumes_so_that_no_container_leaves_one_behind() -> None:
    assert "VOLUME" not in DOCKERFILE


def test_packages_are_installed_through_a_mirror_without_a_trace_of_it() -> None:
    mounts = "--mount=type=secret,id=pip.conf,target=/run/build/pip.conf --mount=type=secret,id=ca.pem"
    assert DOCKERFILE.count("pip install") == DOCKERFILE.count(mounts) == 2
    assert re.findall(r"^ARG (\w+)", DOCKERFILE, re.M) == ["PYTHON"]


def test_the_worker_gets_longer_to_stop_than_its_steps_get_to_finish() -> None:
    worker = SERVICES["worker"]
    assert float(worker["stop_grace_period"].removesuffix("s")) > float(worker["environment"]["PLANS_GRACE"])


def test_every_setting_given_to_the_worker_exists() -> None:
    given = (
        set(SERVICES["worker"]["environment"])
        | set(SERVICES["web"]["environment"])
        | set(re.findall(r"\b(PLANS_\w+)=", DOCKERFILE))
    )
    known = {PREFIX + name.upper() for name in names()}
    assert {name for name in given if name.startswith(PREFIX)} <= known


def test_files_named_by_the_services_exist_and_scripts_may_be_run() -> None:
    for name in ("set-up-schema.sh", "set-up-namespace.sh"):
        script = ROOT / "docker" / name
        assert script.stat().st_mode & 0o111
        assert script.read_text().splitlines()[0] == "#!/bin/sh"
    server = SERVICES["temporal"]
    mounted = server["environment"]["DYNAMIC_CONFIG"].replace("/etc/plans", "docker")
    assert (ROOT / mounted).is_file()
    assert (ROOT / "docker/temporal.yaml").is_file()
    assert server["entrypoint"] == [
        *("temporal-server", "--root", "/etc", "--config", "plans", "--env", "temporal", "--allow-no-auth")
    ]


def test_the_server_is_tuned_and_indexed_like_the_embedded_one() -> None:
    dynamic = yaml.safe_load((ROOT / "docker/dynamicconfig.yaml").read_text())
    assert {key: dynamic[key][0]["value"] for key in FAST} == FAST
    assert {key: dynamic[key][0]["value"] for key in FAIR} == FAIR
    script = (ROOT / "docker/set-up-namespace.sh").read_text()
    assert dict(re.findall(r"^add (\w+) (\w+)$", script, re.M)) == SEARCH_ATTRIBUTES


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        (["date", "sleep"], "temporal: not found"),
        (["date", "sleep", "temporal"], "No answer from 127.0.0.1:{port} to 'temporal operator cluster health': "),
    ],
    ids=["no program", "no server"],
)
def test_setting_up_the_namespace_ends_with_the_reason(tmp_path: Path, programs: list[str], said: str) -> None:
    """It runs before everything else of the stack: while it waited without a word, `docker compose up` did too."""
    for program in programs:
        found = shutil.which(program) or installed(Settings.read({"HOME": os.environ["HOME"]}))
        assert found, "make setup"
        (tmp_path / program).symlink_to(found)
    (port,) = free_ports(0)
    ended = subprocess.run(
        ["/bin/sh", str(ROOT / "docker/set-up-namespace.sh")],
        env={"PATH": str(tmp_path), "TEMPORAL_ADDRESS": f"{HOST}:{port}", "TEMPORAL_NAMESPACE": "d", "PATIENCE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert said.format(port=port) in ended.stderr


def test_the_image_is_built_from_what_is_not_ignored() -> None:
    kept = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = set(re.findall(r"^COPY (\S+) ", DOCKERFILE, re.M))
    assert copied == kept
    assert all((ROOT / path).exists() for path in copied)


@pytest.mark.parametrize("lock", ["requirements.lock", "docker/requirements.lock", "docker/web.lock"])
def test_a_lock_has_a_hash_for_everything_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "index-url" not in text
    for requirement in re.split(r"\n(?=\S)", text.strip()):
        assert re.match(r"[\w.-]+==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement, requirement


def test_the_lock_fits_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = project["dependencies"] + [each for extra in project["optional-dependencies"].values() for each in extra]
    lock = (ROOT / "requirements.lock").read_text()
    pinned = {canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock, re.M)}
    for requirement in map(Requirement, asked):
        if requirement.name == project["name"]:  # `all`, which names the other extras
            continue
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_the_image_gets_the_versions_that_were_tested() -> None:
    def pinned(lock: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==\S+", (ROOT / lock).read_text(), re.M))

    assert pinned("docker/requirements.lock") < pinned("requirements.lock")
    assert pinned("docker/web.lock") < pinned("requirements.lock")


@pytest.mark.slow
@pytest.mark.parametrize(("start", "lock"), [("worker", "requirements.lock"), ("apps.web.__main__", "web.lock")])
def test_what_an_image_starts_imports_what_is_installed_in_it(start: str, lock: str) -> None:
    """The program is imported without any library that the image lacks."""
    images = (ROOT / "docker/requirements.lock").read_text() + (ROOT / "docker" / lock).read_text()
    installed = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", images, re.MULTILINE)}
    absent = [
        module
        for module, found in packages_distributions().items()
        if not installed & {canonicalize_name(name) for name in found} and not (ROOT / module).exists()
    ]
    assert {"pytest", "textual"} <= set(absent)
    script = f"import sys; sys.modules.update(dict.fromkeys({absent!r})); import plansurvive.{start}"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
