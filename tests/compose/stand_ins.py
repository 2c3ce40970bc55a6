"""Images for those that cannot be pulled, made of Debian packages and of programs built from the makers' source.

Where an image can be pulled, nothing stands in for it. A stand-in has the paths, users and commands that
docker-compose.yml and the Dockerfile expect of the image; `Image.differs` says what it does not have.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import installed
from tests.compose.engine import Engine
from tests.kit.go_programs import built, cached, run, schema, source, temporal_programs

SUITE = "bookworm"
UI = ("github.com/temporalio/ui-server/v2", "v2.42.1")
"""The module of the program in temporalio/ui."""
ENTRYPOINT = """\
#!/bin/sh
# As the entrypoint of the postgres image: an empty directory becomes a database with this user and password.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf '%s' "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username "$POSTGRES_USER" --pwfile /tmp/password --encoding UTF8 \\
        --auth-local trust --auth-host scram-sha-256
    rm /tmp/password
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    echo "listen_addresses = '*'" >> "$PGDATA/postgresql.conf"
    pg_ctl --wait --options "-c listen_addresses=''" start
    createdb --username "$POSTGRES_USER" "$POSTGRES_USER"
    pg_ctl --wait --mode fast stop
fi
exec "$@"
"""


@dataclass(frozen=True)
class StandIn:
    """How to make an image for one that cannot be pulled."""

    name: str
    packages: tuple[str, ...]
    arrange: Callable[[Path], None]
    """Changes the root file system that the packages make."""
    changes: tuple[str, ...]
    """Instructions of a Dockerfile for the image."""
    differs: str
    """What it is made of, in place of what the image has."""

    @property
    def tag(self) -> str:
        """Its name in the engine; another recipe has another one."""
        recipe = repr((self.packages, self.changes, SUITE, UI, ENTRYPOINT, inspect.getsource(self.arrange)))
        return f"plans-stand-in/{self.name}:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def make(stand_in: StandIn, engine: Engine) -> str:
    """The tag of a stand-in, which is made unless the engine has it. Only root can make one."""
    if engine.has(stand_in.tag):
        return stand_in.tag
    debootstrap = shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin")
    assert debootstrap, f"no image for {stand_in.name} can be pulled; to make one: apt-get install debootstrap"
    assert os.geteuid() == 0, f"no image for {stand_in.name} can be pulled; only root can make one"
    packages = cached("debootstrap")
    packages.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stand-in-") as folder:
        root = Path(folder) / "root"
        chosen = ["--variant=minbase", f"--cache-dir={packages}", f"--include={','.join(stand_in.packages)}"]
        done = subprocess.run([debootstrap, *chosen, SUITE, str(root)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        stand_in.arrange(root)
        changes = [part for change in stand_in.changes for part in ("--change", change)]
        tree = ["tar", "--create", "--numeric-owner", "--directory", str(root), "--exclude=./var/cache/apt/*", "."]
        with subprocess.Popen(tree, stdout=subprocess.PIPE) as packed:
            command = ["docker", "import", *changes, "-", stand_in.tag]
            subprocess.run(command, env=engine.environ, stdin=packed.stdout, stdout=subprocess.DEVNULL, check=True)
        assert packed.returncode == 0
    return stand_in.tag


def _python(root: Path) -> None:
    next(root.glob("usr/lib/python3*/EXTERNALLY-MANAGED")).unlink()  # the image's Python is not the system's
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")


def _postgresql(root: Path) -> None:
    _inside(root, "usermod --uid 70 postgres && groupmod --gid 70 postgres && rm -rf /var/lib/postgresql/*")
    _inside(root, "install -d -o 70 -g 70 -m 1777 /var/lib/postgresql/data && chown -R 70:70 /var/run/postgresql")
    _inside(root, "ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/")
    entrypoint = root / "usr/local/bin/docker-entrypoint.sh"
    entrypoint.write_text(ENTRYPOINT)
    entrypoint.chmod(0o755)


def _temporal(root: Path) -> None:
    _inside(root, "useradd --uid 1000 --user-group --create-home temporal")
    programs, ui = temporal_programs(), source(*UI)
    for program in (programs / "temporal-server", programs / "temporal-sql-tool", _temporal_cli()):
        shutil.copyfile(program, root / "usr/local/bin" / program.name)
    _inside(root, "chmod 755 /usr/local/bin/temporal*")  # ours is its owner's alone
    shutil.copytree(schema(), root / "etc/temporal/schema/postgresql/v12", copy_function=shutil.copyfile)
    home = root / "home/ui-server"
    (home / "config").mkdir(parents=True)
    server = built(f"{UI[0]}/cmd/server", UI[1], cached(f"ui-server-{UI[1]}"), "ui-server")
    shutil.copyfile(server, home / "ui-server")
    for file in ("docker/start-ui-server.sh", "config/docker.yaml"):
        shutil.copyfile(ui / file, home / file.removeprefix("docker/"))
    _inside(root, "chmod -R u=rwX,go=rX /etc/temporal && chmod 755 /home/ui-server/ui-server /home/ui-server/*.sh")
    _inside(root, "chown -R temporal:temporal /home/ui-server")


def _temporal_cli() -> Path:
    found = installed(Settings.read({name: os.environ[name] for name in ("HOME", "PATH")}))
    assert found, "no temporal program: make setup"
    return found


def _inside(root: Path, script: str) -> None:
    run("chroot", str(root), "/bin/sh", "-euc", script)


PYTHON = StandIn(
    "python",
    ("ca-certificates", "python3", "python3-pip"),
    _python,
    (),
    "Python 3.11.2 and pip of Debian 12, not 3.11.13",
)
POSTGRESQL = StandIn(
    "postgresql",
    ("postgresql", "ca-certificates"),
    _postgresql,
    (
        "ENV PGDATA=/var/lib/postgresql/data",
        "ENV LANG=C.UTF-8",
        "VOLUME /var/lib/postgresql/data",
        "EXPOSE 5432",
        'ENTRYPOINT ["docker-entrypoint.sh"]',
        'CMD ["postgres"]',
    ),
    "PostgreSQL 15 of Debian 12, not 16.9 on Alpine; an entrypoint of these tests",
)
TEMPORAL = StandIn(
    "temporal",
    ("bash", "ca-certificates", "netcat-openbsd", "wget"),
    _temporal,
    ("USER temporal", "WORKDIR /home/ui-server", 'ENTRYPOINT ["./start-ui-server.sh"]'),
    "server, SQL tool 1.29.1, UI 2.42.1, each built from its Go module, the CLI of `make setup`; Debian 12, not Alpine",
)
