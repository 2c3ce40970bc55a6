"""Commands in a sandbox: bubblewrap or Landlock, seccomp, resource limits, the launcher and its processes.

May import `plans` and `runtime`; the launcher and what it loads import the standard library only.
"""
