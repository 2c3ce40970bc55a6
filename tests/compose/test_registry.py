"""Image and chart from a registry: each starts a plan with one command, without a checkout, Python or Temporal here.

No cluster runs: of the chart, the pod of its worker is run by Docker, as user, with environment and root as it says.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plansurvive.runtime.server import free_ports
from plansurvive.runtime.temporal_binary import PINNED
from scripts.release import current
from tests.compose.engine import Engine
from tests.compose.stack import ROOT, build_options
from tests.deploy.helm import CHART, KUBERNETES, helm
from tests.kit.go_programs import built, cached
from tests.kit.waiting import until

REGISTRY = ("github.com/distribution/distribution/v3/cmd/registry", "v3.0.0")
"""What is built where there is no `docker-registry` (Debian has it)."""
OWNER = 1234
"""A user that neither this machine nor the image knows."""
PLAN = {
    "title": "Count",
    "steps": [
        {"id": "count", "tool": "run_command", "requiresApproval": False, "args": {"command": "ls | wc -l"}},
        {"id": "report", "tool": "write_file", "args": {"path": "report.md", "content": "{{count.stdout}}"}},
    ],
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A directory that every user may enter."""
    made = Path(tempfile.mkdtemp(prefix="plans-registry-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def registry(folder: Path) -> Iterator[str]:
    """The address of an empty registry."""
    found = shutil.which("docker-registry")
    program = found or str(built(*REGISTRY, cached(f"registry-{REGISTRY[1]}"), "docker-registry"))
    (port,) = free_ports(0)
    settings = {
        "version": 0.1, "http": {"addr": f"127.0.0.1:{port}"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "registry")}},
    }  # fmt: skip
    (folder / "registry.yml").write_text(yaml.safe_dump(settings))
    process = subprocess.Popen([program, "serve", str(folder / "registry.yml")], stderr=subprocess.DEVNULL)
    yield f"127.0.0.1:{port}/owner"
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="module")
def image(docker: Engine, registry: str, folder: Path) -> str:
    """The worker's image, as a release pushes it; it is in the registry alone."""
    name = f"{registry}/plans-worker:{current()}"
    docker.run("build", "--target", "worker", "--tag", name, *build_options(docker, folder), str(ROOT))
    docker.run("push", name)
    docker.run("rmi", name)
    return name


def own(*paths: Path) -> None:
    """Give files and directories to the user of the containers."""
    for path in paths:
        for each in (path, *path.rglob("*")):
            os.lchown(each, OWNER, OWNER)


def test_one_command_pulls_the_image_and_runs_a_plan_where_the_user_stands(
    docker: Engine, image: str, folder: Path, temporal_binary: Path
) -> None:
    here, cache = folder / "here", folder / "cache"
    here.mkdir()
    (here / "plan.yaml").write_text(yaml.safe_dump(PLAN))
    shutil.copytree(temporal_binary.parent, cache / f"temporal-{PINNED.version}")  # else it is downloaded
    own(here, cache)
    ran = docker.run(
        "run", "--rm", "--user", f"{OWNER}:{OWNER}", "--env", "PLANS_STATE_DIR=/tmp/state",
        "--volume", f"{here}:/workspace", "--workdir", "/workspace", "--volume", f"{cache}:/tmp/plans",
        image, "plan", "run", "plan.yaml",
    )  # fmt: skip
    assert "✓ completed   2 of 2 steps" in ran
    assert (here / "report.md").read_text().strip() == "1"
    assert (here / "report.md").stat().st_uid == OWNER


async def test_one_command_installs_the_chart_from_the_registry_and_its_pod_runs_plans(
    docker: Engine, image: str, registry: str, folder: Path, address: str
) -> None:
    program = helm()
    if program is None:
        pytest.skip("Helm is not installed, and there is no Go to build it")
    chart = f"oci://{registry}/charts"
    output([program, "package", str(CHART), "--destination", str(folder)])
    output([program, "push", str(folder / f"plans-{current()}.tgz"), chart, "--plain-http"])
    values = [f"temporal.address={address}", f"image.worker.repository={image.rpartition(':')[0]}"]
    chosen = [part for value in values for part in ("--set", value)]
    objects = output(
        [program, "template", "plans", f"{chart}/plans", "--plain-http", "--kube-version", KUBERNETES, *chosen]
    )
    pod = next(
        each["spec"]["template"]["spec"]
        for each in yaml.safe_load_all(objects)
        if each and each["kind"] == "Deployment"
    )
    (container,) = pod["containers"]
    name = docker.run("run", "--detach", *options(pod), container["image"]).strip()
    try:
        probe = container["readinessProbe"]["exec"]["command"]
        await until(lambda: docker.attempt("exec", name, *probe).returncode == 0, "the pod is ready", every=1)
        ran = started_in(docker, name)
        assert "✓ completed   2 of 2 steps" in ran.stdout, ran.stdout + ran.stderr
        processes = docker.run("top", name, "-eo", "pid,args")
        assert processes.count("worker.py") == 1, "a command in a pod starts no worker beside the pod's"
    finally:
        docker.run("rm", "--force", name)


def started_in(docker: Engine, container: str) -> subprocess.CompletedProcess[str]:
    """The end of `plan run` in a container, with the plan on its standard input."""
    command = ["docker", "exec", "--interactive", container, "plan", "run", "-"]
    text = yaml.safe_dump(PLAN)
    return subprocess.run(command, env=docker.environ, input=text, capture_output=True, text=True, check=False)


def options(pod: dict[str, Any]) -> list[str]:
    """What Docker is to be given for a pod: its user, its root, its environment, its volumes as empty ones."""
    (container,) = pod["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    user = pod["securityContext"]["runAsUser"]
    environment = [part for each in container["env"] for part in ("--env", f"{each['name']}={each['value']}")]
    mounts = [f"{each['mountPath']}:uid={user},mode=0700,exec" for each in container["volumeMounts"]]
    tmpfs = [part for each in mounts for part in ("--tmpfs", each)]
    return ["--network=host", f"--user={user}", "--cap-drop=ALL", "--read-only", *tmpfs, *environment]


def output(command: list[str]) -> str:
    """What a command prints; a failure shows all it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout
