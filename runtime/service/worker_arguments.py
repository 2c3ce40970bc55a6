"""The command-line arguments of a worker: `python worker.py`, `plan worker`."""

from __future__ import annotations

import argparse

MAX_PROCESSES = 64


def parser() -> argparse.ArgumentParser:
    """Parses them. `--child` and `--patience` are for workers that a process of ours starts."""
    found = argparse.ArgumentParser(
        prog="plan worker",
        description="Run the steps of plans until stopped.",
        epilog="Of workers with a version: plan worker versions | ramp | rollback | drain, each with --help.",
    )
    found.add_argument("--address", metavar="HOST:PORT", help="Temporal server (TEMPORAL_ADDRESS)")
    found.add_argument("--queue", dest="task_queue", metavar="NAME", help="task queue (PLANS_TASK_QUEUE)")
    found.add_argument("--queues", metavar="A,B", help="also run steps from these queues (PLANS_QUEUES)")
    found.add_argument("--workspace", metavar="DIR", help="default workspace of plans (PLANS_WORKSPACE)")
    found.add_argument("--tools", metavar="MODULES", help="your own tools, comma separated (PLANS_TOOLS)")
    found.add_argument("--state-dir", metavar="DIR", help="state directory: large values, summaries (PLANS_STATE_DIR)")
    found.add_argument(
        "--approvals", metavar="normal|strict", help="strict: approvals cannot be waived (PLANS_APPROVALS)"
    )
    found.add_argument("--max-activities", metavar="N", help="most steps at the same time (PLANS_MAX_ACTIVITIES)")
    found.add_argument("--inline-bytes", metavar="N", help="store longer values outside history (PLANS_INLINE_BYTES)")
    found.add_argument("--grace", metavar="SECONDS", help="time for running steps to finish at the end (PLANS_GRACE)")
    found.add_argument(
        "--version", dest="deployment", metavar="NAME[/BUILD]", help="run as a version of the code (PLANS_DEPLOYMENT)"
    )
    found.add_argument("--processes", metavar="N", type=_processes, default=1, help="worker processes, 1 to 64")
    found.add_argument("--child", metavar="N", type=int, help=argparse.SUPPRESS)
    found.add_argument("--patience", metavar="SECONDS", type=float, help=argparse.SUPPRESS)
    return found


def _processes(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_PROCESSES}")
    return int(text)
