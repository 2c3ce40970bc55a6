"""Which process tree writes which files: a seccomp filter reports the system calls of a command to its launcher.

May import `plans` and `runtime`; what the launcher loads (`calls`, `filter`, `tracer`) the standard library only.
"""
