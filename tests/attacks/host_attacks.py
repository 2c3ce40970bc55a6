"""Settings of the host's kernel, rights of root, other processes, and what names rights on files."""

from __future__ import annotations

from tests.attacks.attack import NAMED_FOR_USER, ONLY_ROOT, Attack, Spelling
from tests.attacks.judges import (
    device_made,
    host_name,
    immutable,
    kernel_value,
    key_stolen,
    marked,
    set_id,
    stolen,
    written,
)
from tests.attacks.process_judges import disturbed, held_open, opened_to_write, overheard, spied_on

KEEP_OPEN = """
import os, time
for mode in (os.O_WRONLY, os.O_RDWR):
    try:
        held = os.open("%s", mode)
        time.sleep(0.6)
    except OSError:
        pass
"""
FORCED = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.mount(b"proc", b"/proc", b"proc", 32, None)
libc.mount(None, b"/proc/sys", None, 32 | 4096, None)
try:
    open("/proc/sys/kernel/printk_ratelimit_burst", "w").write("@NEXT@")
except OSError:
    pass
"""
LEASE, BURST = "/proc/sys/fs/lease-break-time", "/proc/sys/kernel/printk_ratelimit_burst"
TIME = "/sys/module/printk/parameters/time"
CORE, CACHES = "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches"

KERNEL = Attack(
    "host kernel settings",
    kernel_value(LEASE),
    (
        Spelling("/proc/sys by a shell", f"echo @NEXT@ > {LEASE}"),
        Spelling("/proc/sys by the root of a process", f"echo @NEXT@ > /proc/$PPID/root{LEASE}"),
        Spelling("/proc/sys with sysctl", "sysctl -w fs.lease-break-time=@NEXT@"),
        Spelling("/proc mounted once more", python=FORCED, judge=kernel_value(BURST)),
        Spelling(
            "/proc mounted in other name spaces",
            f"unshare -Urmpf --mount-proc sh -c 'echo @NEXT@ > {LEASE}' || unshare -mpf --mount-proc sh -c 'echo @NEXT@ > {LEASE}'",
        ),
        Spelling("/sys", f"echo @NEXT@ > {TIME}", judge=kernel_value(TIME)),
        Spelling("core_pattern opened", python=KEEP_OPEN % CORE, judge=held_open(opened_to_write(CORE))),
        Spelling("drop_caches opened", python=KEEP_OPEN % CACHES, judge=held_open(opened_to_write(CACHES))),
    ),
    expected=ONLY_ROOT,
    alone=True,
)

NAME = """
import ctypes
ctypes.CDLL(None).sethostname(b"attacked", 8)
"""
NAME_BY_NAMESPACE = """
import ctypes, os
libc = ctypes.CDLL(None)
for process in ("1", "@PPID@", str(os.getppid())):
    try:
        libc.setns(os.open(f"/proc/{process}/ns/uts", os.O_RDONLY), 0)
        libc.sethostname(b"attacked", 8)
    except OSError:
        pass
"""
HOST_NAME = Attack(
    "host name",
    host_name,
    (
        Spelling("sethostname", python=NAME),
        Spelling("/proc/sys/kernel/hostname", "echo attacked > /proc/sys/kernel/hostname"),
        Spelling("the program hostname", "hostname attacked || hostname -b attacked"),
        Spelling("another process's name space", python=NAME_BY_NAMESPACE),
    ),
    expected=ONLY_ROOT,
    alone=True,
)

DEVICES = Attack(
    "devices in the workspace",
    device_made,
    (
        Spelling("mknod of a disk", "mknod disk b 7 0"),
        Spelling("mknod of memory", "mknod memory c 1 1"),
        Spelling("mknodat", python="import os; os.mknod('disk', 0o60600, os.makedev(7, 0), dir_fd=os.open('.', 0))"),
        Spelling("a copy of a device", "cp -a /dev/loop0 disk || cp -a /dev/vda disk || cp -a /dev/tty0 disk"),
        Spelling("a hard link to a device", "ln /dev/null disk; mknod -m 666 zero c 1 5"),
    ),
    expected=ONLY_ROOT,
)

FLAGS = """
import fcntl, os, struct
for mode in (os.O_RDONLY, os.O_RDONLY | os.O_NONBLOCK):
    fd = os.open("@OUT@/file", mode)
    fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x20))
"""
IMMUTABLE = Attack(
    "file attributes that only root may set",
    immutable,
    (
        Spelling("chattr +i", "chattr +i @OUT@/file"),
        Spelling("chattr +a", "chattr +a @OUT@/file"),
        Spelling("the ioctl", python=FLAGS),
    ),
    expected=ONLY_ROOT,
)

PEEK = """
import os, re
for line in open("/proc/@PID@/maps"):
    at = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw.*stack", line)
    if at:
        low, high = (int(each, 16) for each in at.groups())
        with open("/proc/@PID@/mem", "rb", 0) as memory:
            memory.seek(low)
            open("loot", "wb").write(memory.read(high - low))
"""
TRACE = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long] * 4
if not libc.ptrace(16, @PID@, 0, 0):
    os.waitpid(@PID@, 0x40000000)
    print(open("/proc/@PID@/environ").read())
    libc.ptrace(17, @PID@, 0, 0)
"""
VM_READ = """
import ctypes, re
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
for line in open("/proc/@PID@/maps"):
    at = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw.*stack", line)
    if at:
        low, high = (int(each, 16) for each in at.groups())
        here = ctypes.create_string_buffer(high - low)
        mine, other = Part(ctypes.addressof(here), high - low), Part(low, high - low)
        ctypes.CDLL(None).process_vm_readv(@PID@, ctypes.byref(mine), 1, ctypes.byref(other), 1, 0)
        open("loot", "wb").write(here.raw)
"""
SPYING = Attack(
    "memory and environment of other processes",
    spied_on,
    (
        Spelling("environ", "tr '\\0' '\\n' < /proc/@PID@/environ"),
        Spelling("environ of all", "cat /proc/[0-9]*/environ > loot"),
        Spelling("mem", python=PEEK),
        Spelling("ptrace", python=TRACE),
        Spelling("process_vm_readv", python=VM_READ),
        Spelling("a thread's environ", "cat /proc/@PID@/task/@PID@/environ > loot"),
        Spelling("environ of the worker", "cat /proc/[0-9]*/environ > loot", judge=key_stolen),
    ),
)

ARGUMENTS_OF_OTHERS = Attack(
    "command lines of other processes",
    overheard,
    (
        Spelling("cmdline", "tr '\\0' ' ' < /proc/@PID@/cmdline"),
        Spelling("cmdline of all", "cat /proc/[0-9]*/cmdline > loot"),
        Spelling("ps", "ps -eww -o args"),
        Spelling("a thread's", "tr '\\0' ' ' < /proc/@PID@/task/@PID@/cmdline"),
    ),
    expected=NAMED_FOR_USER,
)

DISTURBING = Attack(
    "other processes ended or changed",
    disturbed,
    (
        Spelling("kill", "kill -9 @PID@; sleep 0.1"),
        Spelling("kill -STOP", "kill -STOP @PID@; sleep 0.1"),
        Spelling("kill everything of the user's group", "kill -STOP @PID@ -- -@PID@; /bin/kill -STOP @PID@; sleep 0.1"),
        Spelling(
            "a process descriptor",
            python="import os, signal, time; fd = os.pidfd_open(@PID@); signal.pidfd_send_signal(fd, 9); time.sleep(.1)",
        ),
        Spelling("renice", "renice -n 17 -p @PID@", expected=NAMED_FOR_USER),
        Spelling("processors", python="import os; os.sched_setaffinity(@PID@, {0})", expected=NAMED_FOR_USER),
        Spelling("limits", python="import resource; resource.prlimit(@PID@, 7, (64, 64))", expected=NAMED_FOR_USER),
        Spelling("priority of its input and output", "ionice -c 3 -p @PID@", expected=NAMED_FOR_USER),
    ),
)

CAPABILITY = """
import os, struct
open("tool", "w").write("x")
os.setxattr("tool", "security.capability", struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0xff, 0))
"""
SET_ID = Attack(
    "set-user-id files and file capabilities",
    set_id,
    (
        Spelling("chmod u+s", "cp /bin/true tool; chmod u+s tool"),
        Spelling("chmod g+s", "cp /bin/true tool; chmod 2755 tool"),
        Spelling("install", "install -m 4755 /bin/true tool"),
        Spelling("created with the bit", python="import os; os.umask(0); os.open('tool', os.O_CREAT | os.O_WRONLY, 0o4755)"),
        Spelling("an archive", python="import os, tarfile; open('t', 'w'); a = tarfile.open('a', 'w'); i = a.gettarinfo('t');"
                 "i.mode = 0o4755; a.addfile(i); a.close(); os.remove('t'); tarfile.open('a').extractall()"),
        Spelling("fchmodat2", python="import ctypes, os; open('tool', 'w'); ctypes.CDLL(None).syscall(452, -100, b'tool', 0o4755, 0)"),
        Spelling("mknod with the bit", python="import os; os.umask(0); os.mknod('tool', 0o104755)"),
        Spelling("a capability of the file", python=CAPABILITY, expected=ONLY_ROOT),
    ),
)  # fmt: skip

MARKS = Attack(
    "permission bits, owner, times of files outside",
    marked,
    (
        Spelling("chmod", "chmod 777 @OUT@/file", expected=NAMED_FOR_USER),
        Spelling("touch -d", "touch -d 2001-01-01 @OUT@/file", expected=NAMED_FOR_USER),
        Spelling("an attribute", python="import os; os.setxattr('@OUT@/file', 'user.evil', b'x')", expected=NAMED_FOR_USER),
        Spelling("by a link in the workspace", "ln -s @OUT@/file l; chmod 666 l", expected=NAMED_FOR_USER),
        Spelling("by a descriptor", python="import os; os.fchmod(os.open('@OUT@/file', os.O_RDONLY), 0o700)"),
        Spelling("chown", "chown 12345:12345 @OUT@/file", expected={**ONLY_ROOT}),
    ),
)  # fmt: skip


HANDLE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
handle, mount = ctypes.create_string_buffer(b"\\x80\\0\\0\\0", 136), ctypes.c_int()
libc.name_to_handle_at(-100, b"@HOME@/.ssh/id_rsa", handle, ctypes.byref(mount), 0)
fd = libc.open_by_handle_at(os.open(".", 0), handle, os.O_RDONLY)
print(os.read(fd, 1000) if fd >= 0 else "")
"""
ROOT_OF_HOST = Attack(
    "mounts and name spaces",
    written,
    (
        Spelling("a bind mount", "mkdir m; unshare -m sh -c 'mount --bind @OUT@ m && echo x > m/new'"),
        Spelling("a remount", "unshare -m sh -c 'mount -o remount,rw /; mount -o remount,rw,bind /; echo x > @OUT@/new'"),
        Spelling("the worker's mount name space", "nsenter -t $PPID -m sh -c 'echo x > @OUT@/new'; nsenter -t 1 -m sh -c 'echo x > @OUT@/new'"),
        Spelling("another root", "chroot /proc/$PPID/root sh -c 'echo x > @OUT@/new'; chroot /proc/1/root sh -c 'echo x > @OUT@/new'"),
        Spelling("a user name space", "unshare -Urm sh -c 'mkdir m; mount --bind @OUT@ m; echo x > m/new; umount -l @OUT@; echo x > @OUT@/new'",
                 expected={("off", "ordinary"): "succeeds"}),
        Spelling("a file handle", python=HANDLE, judge=stolen, expected=ONLY_ROOT),
    ),
    expected=ONLY_ROOT,
)  # fmt: skip

HOST_ATTACKS = (
    KERNEL, HOST_NAME, DEVICES, IMMUTABLE, ROOT_OF_HOST, SPYING, ARGUMENTS_OF_OTHERS, DISTURBING, SET_ID, MARKS
)  # fmt: skip
