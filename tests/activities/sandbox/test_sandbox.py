"""Commands that try to leave the workspace, judged from the host. Each has its control: without a sandbox it works.

A level that this host does not have is skipped, with what the probe said.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.attempt.run import tool_activity
from plansurvive.activities.provenance.watcher import Watcher
from plansurvive.activities.sandbox import landlock, seccomp
from plansurvive.activities.sandbox.sandbox import Level, Limits, Mode, Network, choose, describe, missing
from plansurvive.activities.tools.shell import run_command
from tests.activities.attempts import Attempts
from tests.activities.processes import is_running, until
from tests.kit.host import a_nap, running
from tests.kit.lacking import require_sandbox
from tests.kit.waiting import PATIENCE

CANARY = "canary-7d1f0c"
PYTHON = sys.executable
AT_ROOT = pytest.mark.skipif(
    subprocess.run(["sh", "-c", "unshare -m true"], stderr=subprocess.DEVNULL).returncode != 0,
    reason="only root has the power to misuse, where it may make name spaces",
)

WRITES = {
    "a new file": "echo x > {out}/new",
    "an append": "echo x >> {out}/file",
    "a deletion": "rm -f {out}/file",
    "a rename": "mv {out}/file {out}/moved",
    "a new directory": "mkdir {out}/dir",
    "a move into the workspace": "mv {out}/file here",
    "a way up": "echo x > ../outside/new",
    "a way up by proc": "echo x > /proc/self/cwd/../outside/new",
    "a link to the directory": "ln -s {out} link; echo x > link/new",
    "a link to the file": "ln -s {out}/file link; echo x > link",
    "a hard link": "ln {out}/file hard && echo x >> hard",
    "a truncation": "truncate -s 0 {out}/file",
    "an edit in place": "sed -i s/old/new/ {out}/file",
    "dd": "echo x | dd of={out}/new status=none",
    "tee": "echo x | tee {out}/new > /dev/null",
    "cp": "echo x > y; cp y {out}/new",
    "tar": "echo x > y; tar cf a.tar y; tar xf a.tar -C {out}",
    "a pipe": "mkfifo {out}/fifo",
    "xargs": "echo {out}/new | xargs touch",
    "env": "env -i /bin/sh -c 'echo x > {out}/new'",
    "find": "find . -maxdepth 0 -exec touch {out}/new ';'",
    "an encoded command": "echo {encoded} | base64 -d | sh",
    "eval": "a='echo x >'; eval \"$a {out}/new\"",
    "Python": "{python} -c \"open('{out}/new', 'w')\"",
    "Python by descriptor": "{python} -c \"import os; d = os.open('..', 0); os.mkdir('outside/dir', dir_fd=d)\"",
    "Python renaming": "{python} -c \"import os; os.replace('{out}/file', '{out}/moved')\"",
    "a swapped directory": "mkdir d; mv d e; ln -s {out} d; echo x > d/new",
    "the root of the worker": "echo x > /proc/{worker}/root{out}/new",
    "the root of the parent": "echo x > /proc/$PPID/root{out}/new",
    "the worker's state": "echo x > {state}/new",
    "temporary files of others": "echo x > {shared}/new",
}
READS = {
    "cat": "cat {out}/canary",
    "a copy": "cp {out}/canary stolen; cat stolen",
    "a search": "grep -rs canary- {out}",
    "an archive": "tar cf - {out} 2>/dev/null | cat",
    "a link": "ln -s {out}/canary link; cat link",
    "the root of the worker": "cat /proc/{worker}/root{out}/canary",
    "the worker's state": "cat {state}/canary",
}
BY_ROOT = {
    "a bind mount": "mkdir m; unshare -m sh -c 'mount --bind {out} m && echo x > m/new'",
    "a remount": "unshare -m sh -c 'mount -o remount,rw /; echo x > {out}/new'",
    "the name space of the worker": "nsenter -t {worker} -m sh -c 'echo x > {out}/new'",
    "another root": "chroot /proc/{worker}/root sh -c 'echo x > {out}/new'",
}
MARKS = {  # what Landlock does not guard
    "permissions": "chmod 777 {out}/file",
    "times": "touch -d 2001-01-01 {out}/file",
}


@dataclass
class Host:
    """A place outside the workspace, and a way to run commands inside."""

    attempts: Attempts
    state: Path
    outside: Path
    shared: Path
    files: dict[str, str] = field(default_factory=dict)

    def at(self, level: Mode, *, network: Network = "step", limits: Limits | None = None) -> Attempts:
        """Attempts at a level; the test is skipped where the host does not have it."""
        require_sandbox(level)
        sandbox = choose(level, network=network, limits=limits, state=self.state)
        return self.attempts.but(site=ToolEnvironment(sandbox=sandbox, watcher=Watcher(self.state)))

    async def run(self, attempts: Attempts, attack: str) -> str:
        """What the attack said; whether it was successful is not for it to tell."""
        encoded = "ZWNobyB4ID4gLi4vb3V0c2lkZS9uZXc="  # echo x > ../outside/new
        command = attack.format(
            out=self.outside, state=self.state, shared=self.shared, python=PYTHON, encoded=encoded,
            worker=os.getpid(),
        )  # fmt: skip
        value = await attempts.value("run_command", command=command, allowFailure=True)
        return str(value["stdout"] + value["stderr"])

    def look(self) -> dict[str, tuple[object, ...]]:
        """Everything there is outside."""
        found: dict[str, tuple[object, ...]] = {}
        for top in (self.outside, self.shared):
            for path in sorted(top.rglob("*")):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() else b""
                found[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, content)
        for path in (self.state / "new", self.state / "canary"):
            found[str(path)] = (path.exists() and path.read_bytes(),)
        return found


@pytest.fixture
def host(attempts: Attempts, state_dir: Path, tmp_path: Path) -> Host:
    outside, shared = attempts.workspace.parent / "outside", tmp_path / "shared"
    for folder in (outside, shared):
        folder.mkdir(exist_ok=True)
    (outside / "file").write_text("old\n")
    for folder in (outside, state_dir):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "canary").write_text(CANARY)
    return Host(attempts, state_dir, outside, shared)


def levels(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("level", names)


@levels("bwrap", "landlock")
@pytest.mark.parametrize("way", [*WRITES, *(pytest.param(way, marks=AT_ROOT) for way in BY_ROOT)])
async def test_no_way_to_write_outside_the_workspace_works(host: Host, way: str, level: Mode) -> None:
    attempts, before = host.at(level), host.look()
    await host.run(attempts, {**WRITES, **BY_ROOT}[way])
    assert host.look() == before


@pytest.mark.parametrize("way", [*WRITES, *MARKS, *(pytest.param(way, marks=AT_ROOT) for way in BY_ROOT)])
async def test_each_of_them_works_without_a_sandbox(host: Host, way: str) -> None:
    attempts, before = host.at("off"), host.look()
    await host.run(attempts, {**WRITES, **MARKS, **BY_ROOT}[way])
    assert host.look() != before


@pytest.mark.parametrize("way", MARKS)
async def test_permissions_and_times_outside_stay_in_a_sandbox_of_level_2(host: Host, way: str) -> None:
    attempts, before = host.at("bwrap"), host.look()
    await host.run(attempts, MARKS[way])
    assert host.look() == before


@levels("bwrap", "landlock")
@pytest.mark.parametrize("way", READS)
async def test_no_way_to_read_what_is_hidden_works(host: Host, way: str, level: Mode) -> None:
    assert CANARY not in await host.run(host.at(level), READS[way])


@pytest.mark.parametrize("way", READS)
async def test_each_way_to_read_works_without_a_sandbox(host: Host, way: str) -> None:
    assert CANARY in await host.run(host.at("off"), READS[way])


def test_the_ways_out_are_as_many_as_promised() -> None:
    assert len(WRITES) + len(READS) + len(BY_ROOT) + len(MARKS) >= 40


@pytest.mark.slow
@pytest.mark.sampled
@levels("bwrap", "landlock", "off")
async def test_ordinary_work_goes_on_in_a_sandbox(host: Host, level: Mode) -> None:
    attempts = host.at(level)
    commands = [
        "echo hi > a; mkdir d; mv a d/b; cat d/b",
        "echo x > $(mktemp)",
        f"{PYTHON} -c \"import tempfile, json; tempfile.mkstemp(); open('c', 'w').write('x')\"",
        "ls / > /dev/null; git --version",
        "sleep 0.01 & wait; ps > /dev/null; id",
    ]
    for command in commands:
        value = await attempts.value("run_command", command=command)
        assert value["exitCode"] == 0
    assert (attempts.workspace / "d" / "b").read_text() == "hi\n"
    assert (await attempts.value("run_python", code="print(1 + 1)"))["stdout"] == "2\n"


@levels("bwrap", "landlock")
async def test_temporary_files_stay_between_the_steps_of_a_plan_and_are_nobody_elses(host: Host, level: Mode) -> None:
    """Other plans in the workspace, the same id started again, and the host have none of them."""
    attempts = host.at(level)
    kept, look = "echo hi > $TMPDIR/kept", "cat $TMPDIR/kept"
    one = attempts.but(run_id="plan-p/11111111")
    await one.value("run_command", command=kept)
    assert (await one.value("run_command", command=look))["stdout"] == "hi\n"
    for other in ("plan-q/11111111", "plan-p/22222222", "agent-p/11111111"):
        seen = await attempts.but(run_id=other).value("run_command", command=look, allowFailure=True)
        assert seen["stdout"] == "", other
    assert not Path(tempfile.gettempdir(), "kept").exists()


async def test_protected_files_that_exist_cannot_be_changed_by_a_command(host: Host) -> None:
    hooks = host.attempts.workspace / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (host.attempts.workspace / ".env").write_text("A=1\n")
    attack = "echo bad > .git/hooks/pre-commit; echo B=2 >> .env; rm .env; mv .git/hooks x; echo ok > .git/other"
    await host.run(host.at("bwrap"), attack)
    assert (list(hooks.iterdir()), (host.attempts.workspace / ".env").read_text()) == ([], "A=1\n")
    assert (host.attempts.workspace / ".git" / "other").exists()
    await host.run(host.at("off"), attack)
    assert not hooks.exists() or list(hooks.iterdir())


WAYS_TO_A_SERVER = {
    "TCP": "socket.create_connection(('127.0.0.1', {port}), 5)",
    "TCP over IPv6": "socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', {port}))",
    "MPTCP": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(('127.0.0.1', {port}))",
}


@pytest.mark.slow
@pytest.mark.sampled
@levels("bwrap", "landlock")
@pytest.mark.parametrize("way", WAYS_TO_A_SERVER)
async def test_a_command_connects_only_where_it_may(host: Host, level: Mode, way: str) -> None:
    if level == "landlock" and not seccomp.is_possible():
        pytest.skip("no filter is known for this kind of processor")
    settings: list[tuple[Network, bool, int]] = [("step", False, 0), ("step", True, 1), ("on", False, 1)]
    for setting, asked, heard in settings:
        with Listening() as server:
            code = "import socket; " + WAYS_TO_A_SERVER[way].format(port=server.port)
            value = await host.at(level, network=setting).value(
                "run_python", code=code, network=asked, allowFailure=True
            )
            if way == "MPTCP" and "not supported" in value["stderr"] + value["stdout"]:
                pytest.skip("this kernel has no MPTCP")
            assert server.heard(heard) == heard, value


@levels("bwrap", "landlock")
async def test_no_datagram_leaves_without_the_network(host: Host, level: Mode) -> None:
    for asked in (False, True):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
            receiver.bind(("127.0.0.1", 0))
            receiver.settimeout(0.2 if not asked else 10)
            code = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', {receiver.getsockname()})"
            await host.at(level).value("run_python", code=code, network=asked, allowFailure=True)
            try:
                received = receiver.recv(10)
            except TimeoutError:
                received = b""
            assert received == (b"x" if asked else b"")


@levels("bwrap", "landlock")
async def test_a_step_that_asks_for_a_network_the_worker_does_not_give_is_refused(host: Host, level: Mode) -> None:
    attempts = host.at(level, network="off")
    assert await attempts.code("run_command", command="echo x > here", network=True) == "NO_NETWORK"
    assert not (attempts.workspace / "here").exists()
    assert (await attempts.value("run_command", command="echo hi"))["stdout"] == "hi\n"


@levels("bwrap", "landlock")
async def test_a_command_that_missed_the_network_is_told_how_to_get_it(host: Host, level: Mode) -> None:
    attack = "import urllib.request as r; r.urlopen('http://127.0.0.1:9/', timeout=5)"
    assert "network: true" in (await host.at(level).error("run_python", code=attack)).message
    assert "network: true" not in (await host.at(level).error("run_python", code=attack, network=True)).message
    assert "network: true" not in (await host.at(level).error("run_command", command="exit 3")).message


@levels("bwrap", "landlock")
async def test_programs_of_one_command_talk_to_each_other_without_the_network(host: Host, level: Mode) -> None:
    code = "import socket; a, b = socket.socketpair(); a.send(b'hi'); print(b.recv(5).decode())"
    assert (await host.at(level).value("run_python", code=code))["stdout"] == "hi\n"


@pytest.mark.slow
@levels("off", "bwrap", "landlock")
async def test_a_program_of_any_length_runs_and_its_input_is_empty(host: Host, level: Mode) -> None:
    code = f"import subprocess, sys\ntext = '{'ä' * 3_000_000}'\nprint(len(text), __name__, repr(sys.stdin.read()))\n"
    code += "sys.stdout.flush(); subprocess.run(['wc', '-c'], check=True)"
    value = await host.at(level).value("run_python", code=code)
    assert value["stdout"].split() == ["3000000", "__main__", "''", "0"]


@levels("bwrap", "landlock")
async def test_a_command_cannot_end_processes_of_the_host(host: Host, level: Mode) -> None:
    if level == "landlock" and landlock.abi() < 6:
        pytest.skip("Landlock guards signals from ABI 6 on")
    bystander = await asyncio.create_subprocess_exec("sleep", "300")
    try:
        await host.run(host.at(level), f"kill -9 {bystander.pid} $PPID")
        assert is_running(bystander.pid)
        await host.run(host.at("off"), f"kill -9 {bystander.pid}")
        assert await bystander.wait() == -9
    finally:
        with suppress(ProcessLookupError):
            bystander.kill()


@pytest.mark.slow
@pytest.mark.sampled
async def test_resources_are_limited(host: Host) -> None:
    attempts = host.at("auto", limits=Limits(cpu=1, file=100_000, memory=400_000_000, open_files=64))
    for command in ("head -c 200000 /dev/zero > big", "while :; do :; done"):
        error = await attempts.error("run_command", command=command)
        assert (error.type, error.non_retryable) == ("RESOURCE_LIMIT", True)
    assert await attempts.code("run_python", code="x = bytearray(10**9)") == "COMMAND_FAILED"
    assert await attempts.code("run_python", code="f = [open('/dev/null') for _ in range(100)]") == "COMMAND_FAILED"
    value = await attempts.value("run_command", command="ulimit -c")
    assert value["stdout"] == "0\n"


MANY = """
import subprocess
naps = [subprocess.Popen(["sleep", "{nap}"]) for _ in range({count})]
print(len(naps), flush=True)
naps[0].wait()
"""


@pytest.mark.slow
@pytest.mark.sampled
@levels("bwrap", "landlock", "off")
async def test_a_command_with_too_many_processes_is_ended_with_all_of_them(host: Host, level: Mode) -> None:
    nap = a_nap().removeprefix("sleep ")
    attempts = host.at(level, limits=Limits(processes=60))
    error = await attempts.error("run_python", code=MANY.format(nap=nap, count=200), allowFailure=True)
    assert (error.type, "PLANS_LIMIT_PROCESSES" in error.message) == ("RESOURCE_LIMIT", True)
    assert running(f"sleep {nap}") == []
    value = await host.at(level).value("run_python", code=MANY.format(nap=0.1, count=200))
    assert value["stdout"] == "200\n"


@pytest.mark.slow
@levels("bwrap", "landlock", "off")
async def test_a_command_that_takes_the_last_room_of_a_disk_is_ended(host: Host, level: Mode) -> None:
    fill = "mkdir {name}; for i in $(seq {count}); do head -c 1000000 /dev/zero > {name}/$i; sleep 0.02; done; echo all"
    found = os.statvfs(host.attempts.workspace)
    limits = Limits(free=found.f_bavail * found.f_frsize - 30_000_000)
    error = await host.at(level, limits=limits).error("run_command", command=fill.format(name="a", count=3_000))
    assert (error.type, "PLANS_LIMIT_FREE_MB" in error.message) == ("RESOURCE_LIMIT", True)
    assert len(list((host.attempts.workspace / "a").iterdir())) < 3_000
    value = await host.at(level).value("run_command", command=fill.format(name="b", count=60))
    assert value["stdout"] == "all\n"


async def test_a_disk_that_was_full_before_keeps_no_command_from_making_room(host: Host) -> None:
    attempts = host.at("auto", limits=Limits(free=2**60))
    assert (await attempts.value("run_command", command="sleep 1.2; echo done"))["stdout"] == "done\n"


async def test_a_command_that_waits_for_input_gets_none(host: Host) -> None:
    value = await host.at("auto").value("run_command", command=f"cat; read x; {PYTHON} -c 'input()'; echo on")
    assert value["stdout"].endswith("on\n")
    assert "EOFError" in value["stderr"]


@levels("bwrap", "landlock", "off")
async def test_the_level_is_recorded_with_the_step(host: Host, level: Mode) -> None:
    attempts = host.at(level)
    wanted = "none" if level == "off" else level
    assert (await attempts.run("run_command", command="true")).sandbox == wanted
    assert (await attempts.error("run_command", command="false")).details[0]["sandbox"] == wanted
    assert (await attempts.run("read_file", path=_some_file(attempts))).sandbox == ""


async def test_a_sandbox_that_is_required_and_cannot_be_had_refuses_commands(host: Host) -> None:
    chosen = choose("required", state=host.state, places=())
    assert "bubblewrap" in describe(chosen)
    error = await host.attempts.but(site=ToolEnvironment(sandbox=chosen)).error("run_command", command="true")
    assert (error.type, error.non_retryable) == ("SANDBOX_UNAVAILABLE", True)
    assert choose("auto", places=()).level in ("landlock", "none")


def test_auto_takes_the_best_there_is() -> None:
    lacking = missing()
    best_first: tuple[Level, ...] = ("bwrap", "landlock", "none")
    best = next(level for level in best_first if level not in lacking)
    assert (choose("auto").level, choose("off").level) == (best, "none")


def _some_file(attempts: Attempts) -> str:
    (attempts.workspace / "some").write_text("x")
    return "some"


class Listening:
    """A server that counts who connects."""

    def __enter__(self) -> Listening:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._count, self._changed = 0, threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def heard(self, awaited: int) -> int:
        """How many have connected; so many are waited for."""
        with self._changed:
            self._changed.wait_for(lambda: self._count >= awaited, PATIENCE)
        return self._count

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                connection.close()
                with self._changed:
                    self._count += 1
                    self._changed.notify()

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@levels("bwrap", "landlock")
async def test_a_cancelled_command_in_a_sandbox_may_clean_up_and_leaves_nothing(host: Host, level: Mode) -> None:
    attempts, nap = host.at(level), a_nap()
    command = f"(trap '' TERM; setsid {nap}) & trap 'echo bye > bye; exit' TERM; echo ready > ready; {nap} & wait"
    environment, call = attempts.environment(), attempts.call({"command": command})
    activity = tool_activity(run_command, attempts.values, attempts.effects, attempts.site)
    attempt = asyncio.ensure_future(environment.run(activity, call))
    await until(lambda: (attempts.workspace / "ready").exists() and len(running(nap)) >= 2)
    environment.cancel()
    with pytest.raises(ApplicationError) as caught:  # its files are told
        await attempt
    assert caught.value.type == "CANCELLED"
    assert (attempts.workspace / "bye").exists()
    assert running(nap) == []
