"""A shared library that writes a marker when it is loaded: that shows how far the process reaches.

It writes without the C library, as its indirect function is resolved before anything else can be called: so it works
in a program that then fails to start, because the library is not the one it stands for.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

PLACE = "/marker-" + "-" * 200
"""In the compiled library stands this name; the marker's path replaces it."""
SOURCE = """
#if defined(__x86_64__)
#define OPENAT 257
#define WRITE 1
static long call(long number, long a, long b, long c, long d) {
    register long r10 __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
#else
#define OPENAT 56
#define WRITE 64
static long call(long number, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c, x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#endif
static char place[] = "%s";
static void mark(void) {
    long file = call(OPENAT, -100, (long)place, 02101, 0644);
    if (file >= 0) call(WRITE, file, (long)"loaded", 6, 0);
}
__attribute__((constructor)) static void loaded(void) { mark(); }
unsigned int la_version(unsigned int version) { mark(); return version; }
int gconv(void) { mark(); return 1; }
int gconv_init(void *step) { mark(); return 1; }
static void resolved(void) {}
static void (*resolve(void))(void) { mark(); return resolved; }
void used(void) __attribute__((ifunc("resolve")));
void (*const taken)(void) = used;
"""


@cache
def _compiled(*flags: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "e.c"), Path(folder, "e.so")
        source.write_text(SOURCE % PLACE)
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", *flags, "-o", str(library), str(source)], check=True)
        return library.read_bytes()


def library(marker: Path, *flags: str) -> bytes:
    """The library, with the path that it writes to."""
    path = str(marker).encode()
    return _compiled(*flags).replace(PLACE.encode(), path + b"\0" * (len(PLACE) - len(path)))
