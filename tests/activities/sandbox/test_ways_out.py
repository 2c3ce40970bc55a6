"""Ways out of the sandbox that were once open, at both levels, for a worker of root and of an ordinary user.

Judged from outside. Each has its control: without a sandbox (level 0), or without the one defence, it works.
"""

from __future__ import annotations

import os
import pty
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from plansurvive.activities.sandbox import bubblewrap, seccomp
from plansurvive.activities.sandbox.process import tried
from plansurvive.activities.sandbox.processes import parent
from plansurvive.activities.sandbox.sandbox import Level, Sandbox
from plansurvive.activities.sandbox.supervisor import NOT_CONFINED
from plansurvive.activities.tracing.trace import read
from tests.activities.sandbox.workers import ORDINARY, User, Worker, a_worker
from tests.kit.host import a_nap, running
from tests.kit.lacking import require_sandbox
from tests.nightly import only_nightly, sampled

PYTHON = "/usr/bin/python3"
LEVELS: tuple[Level, ...] = ("bwrap", "landlock")
AT_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture(params=sampled(["ordinary", "root"], 1))
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    user: User = request.param
    with a_worker(user) as made:
        yield made


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> Level:
    found: Level = request.param
    require_sandbox(found)
    return found


LIBRARY = """
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) void loaded(void) { close(open(PLACE, O_CREAT | O_WRONLY, 0644)); }
unsigned la_version(unsigned version) { return version; }
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc"), reason="it takes a compiler")
@pytest.mark.parametrize("variable", ["LD_PRELOAD", "LD_AUDIT"])
def test_no_library_of_a_step_is_loaded_outside(worker: Worker, level: Level, variable: str) -> None:
    mark, library = worker.place / "mark", worker.workspace / "library.so"
    source = LIBRARY.replace("PLACE", f'"{mark}"')
    build = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(build, input=source.encode(), check=True)
    assert worker.run(level, "true", env={variable: str(library)}).code == 0
    assert not mark.exists()
    worker.run("none", "true", env={variable: str(library)})
    assert mark.exists()


EVIL = "import os; open(os.environ.get('MARK') or {mark!r}, 'w')\n"


@pytest.mark.slow
def test_no_module_of_a_workspace_and_no_python_variable_reaches_the_launcher(worker: Worker, level: Level) -> None:
    mark = worker.place / "mark"
    for name in ("json", "marshal", "select", "sitecustomize", "usercustomize", "activities"):
        (worker.workspace / f"{name}.py").write_text(EVIL.format(mark=str(mark)))
    folder = str(worker.workspace)
    env = {"PYTHONPATH": folder, "PYTHONHOME": folder, "PYTHONSTARTUP": f"{folder}/json.py", "PYTHONUSERBASE": folder}
    for place in (level, "none"):
        assert worker.run(place, "true", env={**env, "PATH": folder}).code == 0
        assert not mark.exists()
    assert worker.run("none", f"{PYTHON} -c 'import json'", env={"PYTHONPATH": folder}).code == 0
    assert mark.exists()


def test_the_environment_of_a_step_is_in_no_process_outside(worker: Worker, level: Level) -> None:
    mark, go = f"CANARY{uuid.uuid4().hex}=1".encode(), worker.workspace / "go"
    waits = "while [ ! -e go ]; do sleep 0.05; done"
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(worker.run, level, waits, env={mark.decode()[:-2]: "1"})
        try:
            while not (found := _with_environment(mark)) and not ended.done():
                time.sleep(0.01)
        finally:
            go.touch()
        assert ended.result().code == 0
    assert found
    assert found <= {"sh", "sleep"}


def _with_environment(mark: bytes) -> set[str]:
    """The names of the programs on this host that have it in their environment."""
    found = set()
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes():
                found.add((folder / "comm").read_text().strip())
    return found


def test_bubblewrap_is_never_looked_up_on_a_path(worker: Worker) -> None:
    fake = worker.workspace / "bwrap"
    fake.write_text(f"#!/bin/sh\ntouch {worker.place}/mark\n")
    fake.chmod(0o755)
    require_sandbox("bwrap")
    path = {"PATH": f"{worker.workspace}:{os.defpath}"}
    assert worker.run("bwrap", "echo in", env=path, environ=path).stdout == "in\n"
    assert not (worker.place / "mark").exists()
    assert bubblewrap.program((str(fake),)) == str(fake)


@pytest.mark.slow
def test_a_command_has_the_standard_descriptors_only(worker: Worker, level: Level) -> None:
    assert worker.run(level, "cd /proc/self/fd; echo *").stdout == "0 1 2 3\n"  # 3: the directory that it lists
    assert worker.run("none", "cd /proc/self/fd; echo *").stdout == "0 1 2 3\n"


@pytest.mark.slow
@pytest.mark.sampled
@AT_ROOT
def test_a_root_worker_gives_its_commands_no_rights_and_keeps_the_files(level: Level) -> None:
    status = "grep -E '^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb))' /proc/self/status"
    with a_worker("root") as worker:
        said = worker.run(
            level, f"{status}; echo x > made; mkdir d; echo out > /dev/stdout; : > $TMPDIR/x; stat -c %u ."
        )
        assert said.code == 0, said
        lines = dict(line.split(":\t", 1) for line in said.stdout.splitlines() if ":\t" in line)
        users = {int(word) for key in ("Uid", "Gid", "Groups") for word in lines[key].split()}
        assert len(users) == 1
        assert users.pop() >= 0x70000000
        assert {int(value, 16) for key, value in lines.items() if key.startswith("Cap")} == {0}
        assert (worker.workspace / "made").stat().st_uid == (worker.workspace / "d").stat().st_uid == 0
        assert worker.run("none", "id -u").stdout == "0\n"


@AT_ROOT
def test_a_root_worker_works_in_the_directory_of_another_user(level: Level) -> None:
    with a_worker("root") as worker:
        (worker.workspace / "old").write_text("1\n")
        for path in (worker.workspace, worker.workspace / "old"):
            os.chown(path, ORDINARY, ORDINARY)
        assert worker.run(level, "echo 2 >> old; echo x > new; stat -c %U old").code == 0
        assert (worker.workspace / "old").read_text() == "1\n2\n"
        found = (worker.workspace / "new").stat()
        assert (found.st_uid, found.st_gid) == (ORDINARY, ORDINARY)


@AT_ROOT
def test_no_mount_stays_on_the_host(level: Level) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    with a_worker("root") as worker:
        assert worker.run(level, "echo x > made").code == 0
        assert Path("/proc/self/mountinfo").read_text() == before
        assert (worker.workspace / "made").read_text() == "x\n"


@AT_ROOT
def test_where_user_ids_cannot_be_mapped_a_root_worker_refuses(level: Level) -> None:
    with a_worker("root") as worker:
        mount = f'mount -t ramfs none {worker.workspace} && exec "$0" "$@"'
        said = worker.run(level, "echo ran", before=("unshare", "-m", "sh", "-c", mount))
        assert (said.code, said.stdout) == (-NOT_CONFINED, "")
        assert "mapped user ids" in said.stderr


SETS = """
import ctypes, os
os.umask(0)
open("f", "w").close()
ways = {
    "chmod": lambda: os.chmod("f", 0o4755),
    "chmod of the group": lambda: os.chmod("f", 0o2755),
    "fchmod": lambda: os.fchmod(os.open("f", os.O_RDWR), 0o4755),
    "fchmodat": lambda: os.chmod("f", 0o4755, dir_fd=os.open(".", 0)),
    "open": lambda: os.open("g", os.O_CREAT | os.O_WRONLY, 0o4755),
    "openat": lambda: os.open("h", os.O_CREAT | os.O_WRONLY, 0o2755, dir_fd=os.open(".", 0)),
    "mknod": lambda: os.mknod("i", 0o104755),
    "mkdir": lambda: os.mkdir("j", 0o2755) or os.chmod("j", 0o2755),
    "a nameless file": lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755),
    "fchmodat2": lambda: ctypes.CDLL(None).syscall(452, -100, b"f", 0o4755, 0),
}
for name, way in ways.items():
    try:
        way()
    except OSError:
        continue
    if name == "a nameless file" or any(os.stat(each).st_mode & 0o6000 for each in os.listdir(".")):
        print(name)
        for each in set(os.listdir(".")) - {"try.py"}:
            os.chmod(each, 0o700)
"""


@pytest.mark.slow
@pytest.mark.sampled
def test_no_file_becomes_set_user_id(worker: Worker, level: Level) -> None:
    if not seccomp.is_possible():
        pytest.skip("no filter is known for this kind of processor")
    (worker.workspace / "try.py").write_text(SETS)
    assert worker.run(level, f"{PYTHON} try.py") == worker.run(level, "true")
    assert not [path for path in worker.workspace.iterdir() if path.stat().st_mode & 0o6000]
    assert worker.run(level, "chmod 755 f; chmod +t . && mkdir -m 700 d").code == 0
    open_ = worker.run("none", f"{PYTHON} try.py").stdout.splitlines()
    assert {"chmod", "fchmod", "fchmodat", "open", "openat", "mknod", "a nameless file"} <= {*open_}


KERNEL = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sysrq-trigger",
    "/proc/sys/vm/swappiness",
)


def test_the_settings_of_the_kernel_cannot_be_opened_for_writing(worker: Worker, level: Level) -> None:
    script = f"import os\nfor p in {KERNEL}:\n try: os.open(p, os.O_WRONLY); print(p)\n except OSError: pass"
    assert worker.run(level, f'{PYTHON} -c "{script}"').stdout == ""
    if worker.user == "root":
        assert KERNEL[0] in worker.run("none", f'{PYTHON} -c "{script}"').stdout


FAMILIES = ("AF_VSOCK", "AF_ALG", "AF_PACKET", "AF_BLUETOOTH", "AF_CAN", "AF_TIPC")


@pytest.mark.slow
def test_key_rings_queues_and_odd_sockets_are_denied(worker: Worker, level: Level) -> None:
    if not seccomp.is_possible() or os.uname().machine != "x86_64":
        pytest.skip("the numbers below are those of x86_64")
    code = """
import ctypes, socket
c = ctypes.CDLL(None).syscall
calls = {"add_key": (248, b"user", b"d", b"p", 1, -4), "keyctl": (250, 0, -4, 1), "unshare": (272, 0x10000000)}
alone = {"shmget": (29, 0x51, 4096, 0o1600), "msgget": (68, 0x51, 0o1600), "semget": (64, 0x51, 1, 0o1600)}
for name, call in {**calls, **(alone if ALONE else {})}.items():
    if c(*call) >= 0: print(name)
for name in FAMILIES:
    for kind in (1, 2, 3, 5):
        try: print(name, socket.socket(getattr(socket, name), kind))
        except OSError: pass
"""
    (worker.workspace / "try.py").write_text(
        f"ALONE, FAMILIES = {level == 'landlock' and worker.user == 'ordinary'}, {FAMILIES}\n{code}"
    )
    assert worker.run(level, f"{PYTHON} try.py") == worker.run(level, "true")
    kinds = ("shm", "msg", "sem")
    left = [line.split() for kind in kinds for line in Path("/proc/sysvipc", kind).read_text().splitlines()]
    assert not [line for line in left if line[0] == str(0x51)]
    (worker.workspace / "try.py").write_text(f"ALONE, FAMILIES = False, ()\n{code}")
    assert "add_key" in worker.run("none", f"{PYTHON} try.py").stdout


@pytest.mark.slow
def test_a_command_cannot_write_to_a_terminal_of_its_user(worker: Worker, level: Level) -> None:
    master, slave = pty.openpty()
    try:
        name = os.ttyname(slave)
        if os.geteuid() == 0 and worker.user == "ordinary":
            os.chown(name, ORDINARY, ORDINARY)
        os.set_blocking(master, False)
        worker.run(level, f"echo INJECT > {name}; echo INJECT > /dev/tty")
        with pytest.raises(BlockingIOError):
            os.read(master, 100)
        worker.run("none", f"echo INJECT > {name}")
        assert b"INJECT" in os.read(master, 100)
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("entry", sampled(["bin", ".", "sbin", "shims", ""], 2))
def test_a_home_is_not_opened_by_an_entry_of_path(worker: Worker, level: Level, entry: str) -> None:
    home = worker.place / "home"
    for folder in (home / ".ssh", home / ".cargo/bin", home / "bin", home / "sbin", home / "shims"):
        folder.mkdir(parents=True)
        (folder / "tool").write_text("#!/bin/sh\necho ran\n")
        (folder / "tool").chmod(0o755)
    for secret in (home / ".ssh/id_rsa", home / ".cargo/credentials.toml"):
        secret.write_text("canary")
    for path in (home, *home.rglob("*")):
        os.chown(path, *((ORDINARY, ORDINARY) if worker.user == "ordinary" and os.geteuid() == 0 else (-1, -1)))
    environ = {"HOME": str(home), "PATH": f"{home}/{entry}:{home}/.cargo/bin:{os.defpath}"}
    reading = f"cat {home}/.ssh/id_rsa {home}/.cargo/credentials.toml; tool"
    said = worker.run(level, reading, environ=environ)
    assert (said.code, said.stdout) == (0, "ran\n"), said
    assert "canary" in worker.run("none", reading, environ=environ).stdout


def test_a_tool_on_path_finds_its_parts_but_not_its_credentials(worker: Worker, level: Level) -> None:
    tool = worker.place / "elsewhere/.cargo"
    for name, text in {"bin/tool": "#!/bin/sh\necho ran\n", "credentials.toml": "canary"}.items():
        (tool / name).parent.mkdir(parents=True, exist_ok=True)
        (tool / name).write_text(text)
        (tool / name).chmod(0o755)
    pyenv = worker.place / "elsewhere/.pyenv"
    for folder in ("shims", "libexec"):
        (pyenv / folder).mkdir(parents=True)
    (pyenv / "libexec/used").write_text("used\n")
    command = f"tool; cat {pyenv}/libexec/used {tool}/credentials.toml"
    environ = {"PATH": f"{tool}/bin:{pyenv}/shims:{os.defpath}"}
    assert worker.run(level, command, environ=environ).stdout == "ran\nused\n"
    assert "canary" in worker.run("none", command, environ=environ).stdout


def test_named_sockets_of_the_host_are_out_of_reach_at_level_2(worker: Worker) -> None:
    require_sandbox("bwrap")
    shown = worker.place / "shown"
    shown.mkdir(mode=0o755)
    for place in (shown / "socket", worker.workspace / "socket"):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(place))
            server.listen()
            place.chmod(0o777)
            code = f"import socket; socket.socket(socket.AF_UNIX).connect('{place}'); print('connected')"
            command = f'{PYTHON} -c "{code}"'
            if os.geteuid() == 0 and worker.user == "ordinary":
                os.chown(place, ORDINARY, ORDINARY)
            assert worker.run("bwrap", command, readable=(shown,)).stdout == ""
            assert worker.run("none", command).stdout == "connected\n"


@pytest.mark.slow
def test_a_recursive_function_ends_and_leaves_nothing(worker: Worker, level: Level) -> None:
    nap = a_nap()
    said = worker.run(level, f"f() {{ {nap} & f & f; }}; f; sleep 20", processes=100)
    assert said.code != 0
    assert running(nap) == []


def test_all_processes_end_with_a_killed_launcher(worker: Worker, level: Level) -> None:
    nap = a_nap()
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(worker.run, level, f"(setsid {nap} &); {nap}")
        while len(found := running(nap)) < 2 and not ended.done():
            time.sleep(0.01)
        os.kill(_launcher_of(int(found[0])), signal.SIGKILL)
        assert ended.result().code == -signal.SIGKILL
    deadline = time.monotonic() + 30
    while running(nap) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert running(nap) == []


def _launcher_of(process: int) -> int:
    """The topmost launcher above a process; its keeper has the same command line."""
    found = 0
    while process > 1:
        process = parent(process)
        if b"launcher.py" in Path(f"/proc/{process}/cmdline").read_bytes():
            found = process
    return found


@AT_ROOT
def test_a_root_worker_shows_what_it_is_told_to_from_closed_directories(level: Level) -> None:
    with a_worker("root") as worker:
        shown = worker.place / "closed/shown"
        shown.mkdir(parents=True)
        (shown / "file").write_text("shown\n")
        (shown.parent / "other").write_text("other\n")
        for path in (worker.place, shown.parent, shown):
            path.chmod(0o700)
        reading = f"cat {shown}/file {shown.parent}/other; echo x > {shown}/new"
        assert worker.run(level, reading, readable=(shown,)).stdout == "shown\n"
        assert worker.run(level, reading).stdout == ""
        assert [path.name for path in shown.iterdir()] == ["file"]


GIT = (".git/hooks", ".git/config", ".git/config.worktree", ".git/modules/m/hooks", "sub/.env")
ATTACKS = {
    "a new hook": "echo evil > .git/hooks/pre-commit",
    "a copy in place of the original": "mv .git old; cp -r old .git; echo evil > .git/hooks/pre-commit",
    "a parent": "mv sub old; cp -r old sub; echo evil > sub/.env",
    "a submodule": "mv .git/modules old; cp -r old .git/modules; echo evil > .git/modules/m/hooks/x",
    "an exchange": "mkdir new; echo evil > new/.env; mv -T sub old; mv -T new sub",
    "removal": "rm -rf .git sub; mkdir -p .git/hooks sub; echo evil > .git/hooks/x; echo evil > sub/.env",
}


@pytest.mark.parametrize("way", sampled(ATTACKS, 2))
def test_protected_files_cannot_be_replaced_with_their_parents(worker: Worker, way: str) -> None:
    require_sandbox("bwrap")
    for folder in (".git/hooks", ".git/modules/m/hooks", "sub"):
        (worker.workspace / folder).mkdir(parents=True)
    for file in (".git/config", "sub/.env", "sub/other"):
        (worker.workspace / file).write_text("old\n")
    for path in worker.workspace.rglob("*"):
        os.chown(path, *((ORDINARY, ORDINARY) if worker.user == "ordinary" and os.geteuid() == 0 else (-1, -1)))
    guarded = [worker.workspace / path for path in (".git/hooks", ".git/modules/m/hooks", "sub/.env", ".git/config")]
    found = ["/".join(path.relative_to(worker.workspace).parts) for path in guarded]
    worker.run("bwrap", ATTACKS[way], protected=GIT)
    kept = [[*path.iterdir()] if path.is_dir() else path.read_text() for path in guarded]
    assert kept == [[], [], "old\n", "old\n"]
    assert worker.run("bwrap", "echo x > .git/index; echo x > sub/more; mv sub/more sub/moved", protected=GIT).code == 0
    worker.run("none", ATTACKS[way], protected=GIT)
    assert "evil" in "".join(p.read_text() for name in found for p in _files(worker.workspace / name))


def _files(path: Path) -> list[Path]:
    return [each for each in (path, *path.rglob("*")) if each.is_file()]


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that every user can pass."""
    with tempfile.TemporaryDirectory(prefix="plans-") as place:
        Path(place).chmod(0o755)
        yield Path(place).resolve()


@pytest.mark.parametrize("exchanged", ["sub", "sub/.env"])
def test_a_directory_exchanged_with_a_link_while_bubblewrap_starts_shows_nothing(
    open_place: Path, exchanged: str
) -> None:
    require_sandbox("bwrap")
    workspace, secret = open_place / "workspace", open_place / "secret"
    for folder in (workspace / "sub", workspace / "a b\n\\c", secret):
        folder.mkdir(parents=True)
        for name in (".env", "id"):
            (folder / name).write_text("canary" if folder == secret else "old")
    (workspace / "link").symlink_to(secret)
    root, inside = str(workspace), f"{workspace}/{exchanged}"
    protected = [f"{root}/sub/.env", f"{root}/a b\n\\c/.env"]
    command = ["/bin/sh", "-c", f"cat {root}/sub/.env {root}/sub/id"]
    order = Sandbox("bwrap", state=open_place / "state").confine(command, root, root, protected, {})
    assert tried(order, 60).stdout == b"oldold"
    # What a race comes to: bubblewrap read the source when it was a link, and the target when it was none.
    at = max(at for at, word in enumerate(order.bwrap) if word == inside) - 1
    order.bwrap[at] = inside.replace(f"{root}/sub", f"{root}/link")
    refused = tried(order, 60)
    assert (refused.returncode, refused.stdout) == (-NOT_CONFINED, b"")
    assert f"{inside} was moved or replaced" in refused.stderr.decode()
    without = subprocess.run([*order.bwrap, "--", *command], capture_output=True, timeout=60)
    assert b"canary" in without.stdout, without.stderr


@pytest.mark.parametrize("moved", [only_nightly("sub"), "sub/.env"])
def test_a_protected_file_that_another_command_renames_to_and_fro_is_never_written(
    open_place: Path, moved: str
) -> None:
    """Commands that start meanwhile would find it under another name, unprotected; a command cannot rename it."""
    require_sandbox("bwrap")
    workspace, sandbox = open_place / "workspace", Sandbox("bwrap", state=open_place / "state")
    (workspace / "sub").mkdir(parents=True)
    (workspace / "sub" / ".env").write_text("old")
    root, away, ended = str(workspace), f"{Path(moved).parent}/away", list[subprocess.CompletedProcess[bytes]]()

    def swing(protected: tuple[str, ...], until: str) -> None:
        loop = f"until [ -e {until} ]; do mv -T {moved} {away} && echo moved; mv -T {away} {moved}; done 2>/dev/null"
        order = sandbox.confine(["/bin/sh", "-c", f"echo > {until}-on; {loop}"], root, root, protected, {})
        ended.append(tried(order, 100))

    def meanwhile(protected: tuple[str, ...], until: str, count: int) -> None:
        thread = threading.Thread(target=swing, args=(protected, until))
        thread.start()
        deadline = time.monotonic() + 60
        while not (workspace / f"{until}-on").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        written = "for each in sub/.env sub/away away/.env; do [ -e $each ] && echo evil > $each; done 2>/dev/null; :"
        for _ in range(count):
            tried(sandbox.confine(["/bin/sh", "-c", written], root, root, protected, {}), 60)
        (workspace / until).touch()
        thread.join()

    meanwhile((f"{root}/sub/.env",), "over", 20)
    assert (workspace / "sub" / ".env").read_text() == "old"
    assert ended[-1].stdout == b""
    meanwhile((), "over2", 1)  # control: where it is not protected, it is moved and written
    assert b"moved" in ended[-1].stdout
    assert "evil" in (workspace / "sub" / ".env").read_text()


def test_too_many_protected_files_are_refused_and_not_left_open(worker: Worker) -> None:
    require_sandbox("bwrap")
    names = tuple(f".env.{number}" for number in range(bubblewrap.MAX_BINDS + 1))
    for name in names:
        (worker.workspace / name).touch()
    said = worker.run("bwrap", "echo evil > .env.1; echo ran", protected=names)
    assert (said.stdout, said.stderr.partition(":")[0]) == ("", "RESOURCE_LIMIT")
    assert worker.run("bwrap", "echo evil > .env.1; echo ran", protected=names[:120]).stdout == "ran\n"
    assert (worker.workspace / ".env.1").read_text() == ""


WORK = {
    "a compiler": "echo 'int main(void) { return 0; }' > a.c && gcc a.c -o a && ./a",
    "git": "git init -q . && echo x > f && git add f && git -c user.name=n -c user.email=e commit -qm m && git log -1",
    "make": "printf 'all: a b\\na b:\\n\\techo $@ > $@\\n' > Makefile && make -sj2 && cat a b",
    "threads": f'{PYTHON} -c "import concurrent.futures as c; print(list(c.ThreadPoolExecutor(4).map(str, range(9))))"',
    "processes": f'{PYTHON} -c "import subprocess as s; [s.run([\\"true\\"], check=True) for _ in range(5)]"',
    "an archive": "mkdir d && echo x > d/f && tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/f",
}


@pytest.mark.parametrize("what", sampled(WORK, 2))
def test_ordinary_work_goes_on(worker: Worker, level: Level, what: str) -> None:
    said = worker.run(level, WORK[what])
    assert said.code == 0, said


def test_locks_between_processes_work_where_shared_memory_is_private(worker: Worker, level: Level) -> None:
    code = "import multiprocessing as m; p = m.Pool(2); print(p.map(abs, [-1, -2])); p.close(); p.join()"
    said = worker.run(level, f'{PYTHON} -c "{code}"')
    if level == "bwrap" or worker.user == "root":
        assert said.stdout == "[1, 2]\n", said
    assert [*worker.workspace.iterdir()] == []


@pytest.mark.parametrize("machine", [0, 1])
def test_a_filter_can_be_made_for_both_machines(machine: int) -> None:
    rows = seccomp._rows(0xC000003E, machine, internet=False, shared_memory=False)
    for at, (code, yes, no, _) in enumerate(rows):
        if code & 7 == 5:  # a jump: it stays inside
            assert at + 1 + max(yes, no) < len(rows)
    assert len(rows) < 4_096


@pytest.mark.sampled
def test_the_files_of_a_command_are_traced_for_every_worker_at_each_level(worker: Worker, level: Level) -> None:
    assert worker.run(level, "mkdir d && echo x > d/f && mv d e").code == 0
    trace = read(worker.place / "trace")
    assert (set(trace.names), set(trace.trees)) == ({"d", "d/f", "e"}, {"d", "e"})
    assert trace.is_whole


def test_a_trace_is_out_of_reach_of_its_command(worker: Worker, level: Level) -> None:
    said = worker.run(level, f"echo x > f; cd {worker.place}; cat trace; echo y >> trace; ls -l /proc/self/fd")
    assert "(" not in said.stdout
    assert "trace" not in said.stdout
    assert read(worker.place / "trace").names == {"f"}
