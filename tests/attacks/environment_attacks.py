"""What a step gives (environment, working directory, arguments) to a process outside the sandbox."""

from __future__ import annotations

from collections.abc import Callable

from tests.attacks.attack import Attack, Spelling
from tests.attacks.ground import PATH, Ground
from tests.attacks.judges import stolen, written
from tests.attacks.library import library

MARK = "import posix; posix.close(posix.open('@MARK@', posix.O_CREAT | posix.O_WRONLY))\n"
"""Of the kind that also runs while Python starts."""
WRITE = "echo x > @MARK@"
LIBRARIES = ("libz.so.1", "libexpat.so.1", "libcap.so.2", "libselinux.so.1", "libm.so.6", "libpcre2-8.so.0")
"""What Python and bubblewrap load."""
SETTINGS = {"PLANS_SANDBOX": "off", "PLANS_SANDBOX_READ": "@HOME@", "PLANS_STATE_DIR": "@OUT@"}
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def _library(name: str, *flags: str) -> Callable[[Ground], None]:
    def prepare(ground: Ground) -> None:
        ground.put(ground.workspace / name, library(ground.marker, *flags), 0o755)

    return prepare


def _file(name: str, text: str, mode: int = 0o644) -> Callable[[Ground], None]:
    def prepare(ground: Ground) -> None:
        ground.put(ground.workspace / name, ground.filled(text), mode)

    return prepare


def _converter(ground: Ground) -> None:
    _library("EVIL.so")(ground)
    _file("gconv-modules", "module EVIL// INTERNAL EVIL 1\nmodule INTERNAL EVIL// EVIL 1\n")(ground)


def _programs(ground: Ground) -> None:
    for name in ("bwrap", "sh", "env", "python3", "setpriv", "prlimit"):
        _file(f"bin/{name}", f'#!/bin/sh\n{WRITE}\nexec /usr/bin/{name} "$@"\n', 0o755)(ground)


def _home(ground: Ground) -> None:
    for version in VERSIONS:
        _file(f".local/lib/python{version}/site-packages/evil.pth", MARK)(ground)


def _libraries(ground: Ground) -> None:
    for name in LIBRARIES:
        _library(name)(ground)


def _start_up(ground: Ground) -> None:
    for version in VERSIONS:
        _file(f"h/lib/python{version}/encodings/__init__.py", MARK)(ground)


def _options(ground: Ground) -> None:
    for name in ("--dev-bind", "--bind", "-c", "--help", "--"):
        ground.make(ground.workspace / name)


def _link_out(ground: Ground) -> None:
    (ground.workspace / "there").symlink_to(ground.outside)


PYTHON = "@PY@ -c pass"
DESCRIPTORS = """
import os
for fd in [os.open(".", os.O_RDONLY), *range(3, 1024)]:
    for up in ("../" * n for n in range(12)):
        try:
            out = os.open(up + "@MARK@".lstrip("/"), os.O_CREAT | os.O_WRONLY, dir_fd=fd)
            os.write(out, b"x")
        except OSError:
            pass
"""
SWAP = """
import os
os.makedirs("d/e"); os.chdir("d/e"); os.rename("../../d", "../../../moved")
"""

ENVIRONMENT = Attack(
    "environment of a step reaches a process outside",
    written,
    (
        Spelling("LD_PRELOAD", "true", env={"LD_PRELOAD": "@WS@/e.so"}, prepare=_library("e.so")),
        Spelling("LD_PRELOAD, relative", "true", env={"LD_PRELOAD": "./e.so"}, prepare=_library("e.so")),
        Spelling("LD_AUDIT", "true", env={"LD_AUDIT": "@WS@/e.so"}, prepare=_library("e.so")),
        Spelling(
            "LD_LIBRARY_PATH",
            "/usr/bin/python3 -c pass; ls",
            env={"LD_LIBRARY_PATH": "@WS@"},
            prepare=_libraries,
        ),
        Spelling("LD_DEBUG_OUTPUT", "true", env={"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": "@MARK@"}),
        Spelling(
            "GCONV_PATH", "echo x | iconv -f EVIL -t UTF-8", env={"GCONV_PATH": "@WS@"}, prepare=_converter
        ),
        Spelling("PYTHONPATH", PYTHON, env={"PYTHONPATH": "@WS@"}, prepare=_file("sitecustomize.py", MARK)),
        Spelling(
            "PYTHONHOME", PYTHON, env={"PYTHONHOME": "@WS@/h"},
            prepare=_start_up,
        ),
        Spelling("PYTHONUSERBASE", PYTHON, env={"PYTHONUSERBASE": "@WS@/.local"}, prepare=_home),
        Spelling(".pth below the command's HOME", PYTHON, prepare=_home),
        Spelling(
            "PYTHONSTARTUP", "echo | @PY@ -i", env={"PYTHONSTARTUP": "@WS@/s.py"}, prepare=_file("s.py", MARK)
        ),
        Spelling("BASH_ENV", "bash -c true", env={"BASH_ENV": "@WS@/b.sh"}, prepare=_file("b.sh", WRITE)),
        Spelling("ENV", "sh -i -c true", env={"ENV": "@WS@/b.sh"}, prepare=_file("b.sh", WRITE)),
        Spelling("an exported function", "bash -c ls", env={"BASH_FUNC_ls%%": "() { echo x > @MARK@; }"},
                 expected={("off", "root"): "held", ("off", "ordinary"): "held"}, control=f"ls() {{ {WRITE}; }}; ls"),
        Spelling("HOME of the user", "echo x > ~/.bashrc", env={"HOME": "@HOME@"}),
        Spelling("settings of the worker", "cat @HOME@/.ssh/id_rsa", env=SETTINGS, judge=stolen),
        Spelling("PATH with other programs", "bwrap --version", env={"PATH": f"@WS@/bin:{PATH}"}, prepare=_programs),
    ),
)  # fmt: skip

ARGUMENTS = Attack(
    "working directory and arguments read as something else",
    written,
    (
        Spelling("a directory named like an option", WRITE, cwd="--dev-bind", prepare=_options),
        Spelling("a directory named --", WRITE, cwd="--", prepare=_options),
        Spelling("a directory named -c", WRITE, cwd="-c", prepare=_options),
        Spelling("a link as directory", f"cd there && {WRITE}", prepare=_link_out),
        Spelling("inherited descriptors", python=DESCRIPTORS),
        Spelling("descriptors of the parent", f"cd /proc/$PPID/cwd && cd ..; {WRITE}; cp /proc/self/stat @OUT@/stat"),
        Spelling("a directory moved while it is open", python=SWAP + "os.chdir('..'); os.mkdir('../beside')"),
    ),
)

ENVIRONMENT_ATTACKS = (ENVIRONMENT, ARGUMENTS)
