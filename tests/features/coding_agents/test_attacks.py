"""An agent that obeys whatever it reads: nothing that others have written has an effect outside its worktree.

Such text reaches it in a file, in a commit's message, and in the result of a tool that its request names: a branch, the
repository's configuration, a hook, what a command printed. The control is the same agent without a sandbox, and with
somebody who approves: every effect is there, of each text.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.features.coding_agents.scene import Scene, code
from tests.features.worktrees.repositories import git, made
from tests.kit.driving import Plans, step
from tests.kit.lacking import require_sandbox

pytestmark = pytest.mark.uses("agents", "children", "worktrees")
PROGRAM = Path(__file__).parent / "obedient_agent.py"
TEXTS = ("file", "commit", "branch", "config", "hook", "tool")
"""Where an order stands."""
BY_ITSELF = ("outside", "workspace", "hook", "config", "reference", "own config", "push", "state", "network", "kill")
"""What the agent then tries with commands of its own, in the order of `commands`."""
BY_PROTOCOL = ("file outside", "file of the workspace", "file above", "file behind a link")
"""What it tries as a file that the worker writes for it; with or without a sandbox it may not."""
LOOKS = "cat .git/config .git/hooks/post-commit; ls -R .git/refs/heads; echo OBEY-tool"


@dataclass
class Ground:
    """A repository with orders in it, and what must stay as it is around it."""

    workspace: Path
    outside: Path
    remote: Path
    state: Path
    trees: Path
    port: int
    received: set[str] = field(default_factory=set)
    victims: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def commands(self) -> list[str]:
        """What the agent does by itself for the text NAME, in the order of BY_ITSELF."""
        kills = " ".join(f"{name}) kill {victim.pid};;" for name, victim in self.victims.items())
        connect = f's = socket.create_connection(("127.0.0.1", {self.port}), 5); s.sendall(b"NAME ")'
        return [
            f"touch {self.outside}/NAME",
            f"touch {self.workspace}/NAME",
            f"echo NAME > {self.workspace}/.git/hooks/NAME",
            f"printf '[agent \"NAME\"]\\n' >> {self.workspace}/.git/config",
            f"git rev-parse HEAD > {self.workspace}/.git/refs/heads/NAME",
            "printf '[agent \"NAME\"]\\n' >> $(sed 's/gitdir: //' .git)/config",
            f"git push -q {self.remote} HEAD:refs/heads/NAME",
            f"touch {self.state}/NAME",
            f"{sys.executable} -I -c 'import socket; {connect}'",
            f"case NAME in {kills} esac",
        ]

    def script(self) -> dict[str, Any]:
        """All that the agent reads and does."""
        return {
            "read": ["README.txt"],
            "look": ["git config --global safe.directory '*'; git log --format=%B"],
            "shell": [f"ln -sfn {self.outside} link", *self.commands()],
            "write": [f"{place}/NAME-file" for place in (self.outside, self.workspace, "..")]
            + ["link/NAME-link", "NAME-inside"],
            "ask": f"touch {self.outside}/NAME-asked",
        }  # fmt: skip

    def seen(self, name: str) -> set[str]:
        """What has happened for a text."""
        own = [path.read_text() for path in self.trees.glob("*/*/git/config")]
        return {
            effect
            for effect, has_happened in {
                "outside": (self.outside / name).exists(),
                "workspace": (self.workspace / name).exists(),
                "hook": (self.workspace / ".git/hooks" / name).exists(),
                "config": f'"{name}"' in (self.workspace / ".git/config").read_text(),
                "reference": (self.workspace / ".git/refs/heads" / name).exists(),
                "own config": any(f'"{name}"' in text for text in own),
                "push": (self.remote / "refs/heads" / name).exists(),
                "state": (self.state / name).exists(),
                "network": name in self.received,
                "kill": self.victims[name].poll() is not None,
                "asked": (self.outside / f"{name}-asked").exists(),
                "file outside": (self.outside / f"{name}-file").exists(),
                "file of the workspace": (self.workspace / f"{name}-file").exists(),
                "file above": any(self.trees.glob(f"*/*/{name}-file")),
                "file behind a link": (self.outside / f"{name}-link").exists(),
            }.items()
            if has_happened
        }


@contextmanager
def listening() -> Iterator[tuple[int, set[str]]]:
    """A port of this machine, and the words that were sent to it."""
    received: set[str] = set()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        received.update(connection.recv(100).decode().split())

        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        yield server.getsockname()[1], received
        server.shutdown(socket.SHUT_RDWR)
        taker.join()


@pytest.fixture
def ground(idle: Plans, scene: Scene, tmp_path: Path) -> Iterator[Ground]:
    """The ground of one test."""
    workspace, outside, remote = idle.workspace, tmp_path / "outside", tmp_path / "remote.git"
    outside.mkdir()
    made(workspace, README="Run the tests. OBEY-file")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "Correct it\n\nOBEY-commit")
    git(workspace, "branch", "fix/OBEY-branch")
    git(workspace, "config", "alias.test", "OBEY-config")
    (workspace / ".git/hooks/post-commit").write_text("#!/bin/sh\n# OBEY-hook\n")
    git(tmp_path, "init", "-q", "--bare", str(remote))
    with ExitStack() as stack:
        port, received = stack.enter_context(listening())
        found = Ground(workspace, outside, remote, scene.settings.state_dir, tmp_path / "trees", port, received)
        for name in TEXTS:
            found.victims[name] = stack.enter_context(subprocess.Popen(["sleep", "600"]))
            stack.callback(found.victims[name].kill)
        yield found


async def obeyed(
    ground: Ground, idle: Plans, scene: Scene, nobody: Literal["deny", "approve"], toml: str = "", **changed: str
) -> dict[str, set[str]]:
    """Have the agent work in a worktree. What has happened, by text; whatever it asks, `nobody` decides."""
    (scene.place / "script.json").write_text(json.dumps(ground.script()))
    scene.home.mkdir()
    rows = {
        "command": [sys.executable, "-I", "-S", str(PROGRAM), str(scene.place / "script.json")],
        "read": [str(PROGRAM), str(scene.place / "script.json")],
        "home": str(scene.home),
        "approve": "never",
    }
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in rows.items())
    file = scene.settings.state_dir / "agents.toml"
    file.write_text(f"[agents.scripted]\n{text}{toml}\n")
    file.chmod(0o600)
    looks = {"id": "look", "tool": "run_command", "requiresApproval": False, "args": {"command": LOOKS}}
    works = code("Mend what is wrong here:\n{{look.stdout}}")
    works |= {"worktree": True, "approval": {"timeout": 0.2, "onTimeout": nobody}}
    async with scene.worker(worktrees=ground.trees, **changed):
        view = await (await idle.start([looks, works])).ended()
    assert view["status"] == "completed", view["log"]
    # It met every text, and what it did inside its worktree is on its branch: nothing was held for want of trying.
    assert step(view, "code")["result"]["value"]["text"].split() == sorted(TEXTS), scene.log()
    (branch,) = git(ground.workspace, "branch", "--list", "plans/*", "--format=%(refname)").split()
    inside = git(ground.workspace, "ls-tree", "--name-only", branch).split()
    assert {f"{name}-inside" for name in TEXTS} <= set(inside)
    return {name: ground.seen(name) for name in TEXTS}


@pytest.mark.parametrize(
    "level",
    ["bwrap", pytest.param("landlock", marks=pytest.mark.slow)],
)
async def test_nothing_that_it_reads_has_it_change_anything_outside_its_worktree(
    level: str, ground: Ground, idle: Plans, scene: Scene
) -> None:
    require_sandbox(level)
    assert await obeyed(ground, idle, scene, "deny", sandbox=level) == {name: set() for name in TEXTS}
    assert git(ground.workspace, "status", "--porcelain") == ""


@pytest.mark.slow
async def test_without_a_sandbox_and_with_approval_it_would_have_done_all_of_it(
    ground: Ground, idle: Plans, scene: Scene
) -> None:
    happened = await obeyed(ground, idle, scene, "approve", 'sandbox = "off"')
    assert happened == {name: {*BY_ITSELF, "asked"} for name in TEXTS}
