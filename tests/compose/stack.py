"""The services of docker-compose.yml in a Docker engine, and a client of them on this machine.

docker-compose.yml is used as it is. A second Compose file, made here, replaces the images that cannot be pulled and
passes on what pip needs on this machine; the ports are free ones of this machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from plansurvive.runtime.server import free_ports
from scripts.pin_images import DIGEST, missing, pinned
from tests.compose.engine import Engine
from tests.compose.stand_ins import POSTGRESQL, PYTHON, TEMPORAL, StandIn, make
from tests.kit.waiting import until

ROOT = Path(__file__).parent.parent.parent
COMPOSE_FILE = ROOT / "docker-compose.yml"
LASTING = ("postgresql", "temporal", "ui", "guard", "worker", "web")
ONCE = ("schema", "namespace")
BUILT = ("worker", "guard", "web")
OWNER = 10001
PROXY_HEADER = "X-Forwarded-Email"
_INSTEAD = {"postgresql": POSTGRESQL, "schema": TEMPORAL, "namespace": TEMPORAL, "temporal": TEMPORAL, "ui": TEMPORAL}


@dataclass(frozen=True)
class Ended:
    """How a command of `plan` ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as data."""
        return json.loads(self.out)


@dataclass
class Stack:
    """The running services, with what they have of this machine in `folder`: workspace, state, and what is theirs."""

    engine: Engine
    folder: Path
    ports: dict[str, int]
    stand_ins: dict[str, StandIn] = field(default_factory=dict)
    """What stands in for an image, by the image."""

    @property
    def workspace(self) -> Path:
        """The directory that plans work in, on this machine."""
        return self.folder / "workspace"

    @property
    def environ(self) -> dict[str, str]:
        """What `docker compose` needs to mean this stack."""
        return self.engine.environ | {
            "COMPOSE_FILE": f"{COMPOSE_FILE}:{self.folder}/instead.yml",
            "COMPOSE_ENV_FILES": f"{self.folder}/.env",
            "COMPOSE_PROJECT_NAME": "plans-test",
            "COMPOSE_PROFILES": "web",
            "COMPOSE_PROGRESS": "plain",
        }

    def compose(self, *arguments: str, **more: str) -> str:
        """What `docker compose` prints. Raises AssertionError with all it said when it fails."""
        return self.engine.run("compose", *arguments, **self.environ, **more)

    def container(self, service: str) -> dict[str, Any]:
        """What Docker knows about the container of a service."""
        found: dict[str, Any] = json.loads(self.engine.run("inspect", self._id(service)))[0]
        return found

    def _id(self, service: str) -> str:
        return self.compose("ps", "--all", "--quiet", service).strip()

    def unhealthy(self) -> dict[str, str]:
        """The services that are not as they should be, with the state of each."""
        states = {service: _state(self.container(service)) for service in (*LASTING, *ONCE) if self._id(service)}
        return {
            service: states.get(service, "absent")
            for service in (*LASTING, *ONCE)
            if states.get(service) != ("exited 0" if service in ONCE else "healthy")
        }

    async def until_healthy(self) -> None:
        """Wait until every service is healthy, and the set-up has been done."""
        await until(lambda: not self.unhealthy() or None, "every service is healthy", patience=300, every=1)

    def kill(self, service: str) -> None:
        """Kill all processes of a service from outside, as a crash would: Docker does not know that it was meant."""
        pid = self.container(service)["State"]["Pid"]
        code = f"import os; os.kill({pid}, 9)"
        image = json.loads(self.compose("config", "--format", "json"))["services"]["worker"]["image"]
        rights = ("--pid=host", "--user=0:0", "--cap-drop=ALL", "--cap-add=KILL", "--network=none")
        self.engine.run("run", "--rm", *rights, "--entrypoint=python", image, "-c", code)

    async def until_restarted(self, service: str, before: dict[str, Any]) -> None:
        """Wait until Docker has started a service again."""
        await until(
            lambda: (now := self.container(service)["State"])["Running"] and now["Pid"] != before["State"]["Pid"],
            f"{service} is started again",
        )

    async def plan(self, *arguments: object, stdin: str | None = None) -> Ended:
        """Run a command of `plan` on this machine, against the stack."""
        command = [sys.executable, "-m", "plansurvive", *map(str, arguments)]
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        environ = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "TEMPORAL_ADDRESS": f"127.0.0.1:{self.ports['TEMPORAL_PORT']}",
            "PLANS_AUTO_WORKER": "off",
        }
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, env=environ, cwd=self.folder, stdin=pipe, stdout=pipe, stderr=pipe
        )
        out, err = await process.communicate((stdin or "").encode())
        assert process.returncode is not None
        return Ended(process.returncode, out.decode(), err.decode())

    async def start(self, plan: Mapping[str, Any]) -> str:
        """Start a plan; its id."""
        started = await self.plan("start", "-", "--json", stdin=json.dumps(plan))
        assert started.code == 0, started.out + started.err
        return str(started.json["planId"])

    async def status(self, plan_id: str) -> str:
        """The status of a plan; empty while it cannot be asked."""
        shown = await self.plan("show", plan_id, "--json")
        return str(shown.json["status"]) if shown.code == 0 else ""

    async def until_asked(self, plan_id: str) -> None:
        """Wait until a plan awaits a decision of a person."""

        async def asks() -> bool:
            shown = await self.plan("show", plan_id, "--json")
            return shown.code == 0 and bool(shown.json["pending"])

        await until(asks, f"{plan_id} asks", every=0.5)

    async def until_ended(self, plan_id: str) -> str:
        """Wait until a plan has ended; its status."""

        async def ended() -> str | None:
            status = await self.status(plan_id)
            return status if status not in ("", "running", "review", "paused") else None

        return str(await until(ended, f"{plan_id} ends", patience=240, every=0.5))

    def own(self, *paths: Path) -> None:
        """Give files and directories, with all in them, to the user of the worker."""
        for path in paths:
            for each in (path, *path.rglob("*")):
                os.lchown(each, OWNER, OWNER)


def prepared(engine: Engine, folder: Path) -> Stack:
    """A stack that can be brought up: images pulled, or made; `.env` written; directories of the worker's user."""
    ports = dict(zip(("TEMPORAL_PORT", "UI_PORT", "WEB_PORT"), free_ports(0, 0, 0), strict=True))
    stack = Stack(engine, folder, ports)
    for name in ("workspace", "state"):
        (folder / name).mkdir()
        (folder / name).chmod(0o700)
    stack.own(folder / "workspace", folder / "state")
    settings = {
        "WORKSPACE": f"{folder}/workspace",
        "STATE": f"{folder}/state",
        "PLANS_WEB_URL": "https://plans.example.org",
        "PLANS_WEB_PROXY_HEADER": PROXY_HEADER,
        "PLANS_WEB_PROXY_FROM": "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16",
        "PLANS_WEB_ROLES": "*=viewer",
        **{name: str(port) for name, port in ports.items()},
    }
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    compose = COMPOSE_FILE.read_text()
    cannot: set[str] = set()

    def look_up(image: str) -> str:
        command = ("buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}")
        found = engine.attempt(*command).stdout.decode().strip()
        if not DIGEST.fullmatch(found):
            cannot.add(image)
        return found if DIGEST.fullmatch(found) else f"sha256:{'0' * 64}"

    assert missing(compose, "")
    (folder / ".env").write_text(pinned(compose, text, look_up))
    (folder / "instead.yml").write_text("services: {}\n")
    (folder / "instead.yml").write_text(yaml.safe_dump(_instead(stack, cannot)))
    return stack


def _instead(stack: Stack, cannot: set[str]) -> dict[str, Any]:
    """The second Compose file."""
    services: dict[str, dict[str, Any]] = {}
    images = {
        name: each["image"]
        for name, each in json.loads(stack.compose("config", "--format", "json"))["services"].items()
    }
    for service, stand_in in _INSTEAD.items():
        image = images[service]
        if not stack.engine.has(image) and (image.split("@")[0] in cannot or not _pulled(stack.engine, image)):
            services[service] = {"image": make(stand_in, stack.engine)}
            stack.stand_ins[image.split("@")[0]] = stand_in
    python = _python()
    build: dict[str, Any] = {}
    if not stack.engine.has(python) and not _pulled(stack.engine, python):
        build["args"] = {"PYTHON": make(PYTHON, stack.engine)}
        stack.stand_ins[python.split("@")[0]] = PYTHON
    secrets = dict(_pip(stack.folder))
    if secrets:
        build["secrets"] = sorted(secrets)
    for service in BUILT:
        services[service] = {"build": {"context": str(ROOT), **build}}
    return {"services": services, "secrets": {name: {"file": str(file)} for name, file in secrets.items()}}


def build_options(engine: Engine, folder: Path) -> list[str]:
    """What `docker build` needs on this machine: a base image that it has or can pull, and what pip is told here."""
    python = _python()
    is_there = engine.has(python) or _pulled(engine, python)
    secrets = [part for name, file in _pip(folder) for part in ("--secret", f"id={name},src={file}")]
    return [*([] if is_there else ["--build-arg", f"PYTHON={make(PYTHON, engine)}"]), *secrets]


def _python() -> str:
    return next(
        line.split("=", 1)[1] for line in (ROOT / "Dockerfile").read_text().splitlines() if line[:11] == "ARG PYTHON="
    )


def _pulled(engine: Engine, image: str) -> bool:
    return engine.attempt("pull", "--quiet", image).returncode == 0


def _pip(folder: Path) -> Iterator[tuple[str, Path]]:
    """What pip is told on this machine, for the builds: files of Docker secrets, by their names."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    told = dict(line.split("=", 1) for line in listed.stdout.splitlines() if "=" in line)
    given = {
        key.rpartition(".")[2]: value.strip("'\"")
        for key, value in sorted(told.items(), key=lambda pair: ":env:" in pair[0])
    }
    kept = {key: given[key] for key in ("index-url", "extra-index-url", "trusted-host", "proxy") if key in given}
    if kept:
        file = folder / "pip.conf"
        file.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in kept.items()))
        yield "pip.conf", file
    if given.get("cert"):
        yield "ca.pem", Path(given["cert"])


def _state(container: dict[str, Any]) -> str:
    state = container["State"]
    if state["Status"] != "running":
        return f"{state['Status']} {state['ExitCode']}"
    return str(state.get("Health", {}).get("Status", "running"))
