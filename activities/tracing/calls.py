"""The system calls that create, change, rename or remove names, with their numbers on x86_64 and aarch64.

Data for `filter` and `tracer`. Sources: Linux `asm/unistd_64.h` and `asm-generic/unistd.h`; None: the machine lacks the
call. Writes through a descriptor are covered by the open that made it. Standard library only.
"""

from __future__ import annotations

import os

Numbers = tuple["int | None", "int | None"]

NAME, FOLLOW, TREE, SOCKET, DOUBT = "name", "follow", "tree", "socket", "doubt"
"""What a call does to a path: to the name itself; to what a link leads to as well; to all that is below; to the name of
a socket. DOUBT: it can change files without naming them, so the trace is incomplete from there on."""
HERE = -1
"""In place of the argument with a directory's descriptor: the path is relative to the working directory."""

Path = tuple[int, int]
"""The argument with the descriptor of a directory, and that with the path."""

CALLS: dict[str, tuple[Numbers, str, tuple[Path, ...]]] = {
    "open": ((2, None), FOLLOW, ((HERE, 0),)),
    "openat": ((257, 56), FOLLOW, ((0, 1),)),
    "openat2": ((437, 437), FOLLOW, ((0, 1),)),
    "creat": ((85, None), FOLLOW, ((HERE, 0),)),
    "truncate": ((76, 45), FOLLOW, ((HERE, 0),)),
    "rename": ((82, None), TREE, ((HERE, 0), (HERE, 1))),
    "renameat": ((264, 38), TREE, ((0, 1), (2, 3))),
    "renameat2": ((316, 276), TREE, ((0, 1), (2, 3))),
    "link": ((86, None), NAME, ((HERE, 0), (HERE, 1))),
    "linkat": ((265, 37), FOLLOW, ((0, 1), (2, 3))),
    "symlink": ((88, None), NAME, ((HERE, 1),)),
    "symlinkat": ((266, 36), NAME, ((1, 2),)),
    "unlink": ((87, None), NAME, ((HERE, 0),)),
    "unlinkat": ((263, 35), NAME, ((0, 1),)),
    "rmdir": ((84, None), NAME, ((HERE, 0),)),
    "mkdir": ((83, None), NAME, ((HERE, 0),)),
    "mkdirat": ((258, 34), NAME, ((0, 1),)),
    "mknod": ((133, None), NAME, ((HERE, 0),)),
    "mknodat": ((259, 33), NAME, ((0, 1),)),
    "chmod": ((90, None), FOLLOW, ((HERE, 0),)),
    "fchmodat": ((268, 53), FOLLOW, ((0, 1),)),
    "fchmodat2": ((452, 452), FOLLOW, ((0, 1),)),
    "chown": ((92, None), FOLLOW, ((HERE, 0),)),
    "lchown": ((94, None), NAME, ((HERE, 0),)),
    "fchownat": ((260, 54), FOLLOW, ((0, 1),)),
    "utime": ((132, None), FOLLOW, ((HERE, 0),)),
    "utimes": ((235, None), FOLLOW, ((HERE, 0),)),
    "futimesat": ((261, None), FOLLOW, ((0, 1),)),
    "utimensat": ((280, 88), FOLLOW, ((0, 1),)),
    "setxattr": ((188, 5), FOLLOW, ((HERE, 0),)),
    "lsetxattr": ((189, 6), NAME, ((HERE, 0),)),
    "removexattr": ((197, 14), FOLLOW, ((HERE, 0),)),
    "lremovexattr": ((198, 15), NAME, ((HERE, 0),)),
    "bind": ((49, 200), SOCKET, ()),
    "io_uring_setup": ((425, 425), DOUBT, ()),
    "open_by_handle_at": ((304, 265), DOUBT, ()),
}

WRITING = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | (getattr(os, "O_TMPFILE", 0) & ~getattr(os, "O_DIRECTORY", 0))
)
"""Flags of an open that can change something; without one of them, opens are not reported."""
FLAGS = {"open": 1, "openat": 2}
"""The argument that holds these flags."""
OF_DESCRIPTOR = {"utimensat": 1, "futimesat": 1}
"""Calls that concern the descriptor itself where this argument, the path, is null."""
FOREIGN = (5, 8, 45)
"""On the machine's 32-bit architecture: open, creat and brk, one of which every program calls when it starts."""
