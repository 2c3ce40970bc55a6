"""Prefect's flow that waits for a person: a module of its own, which the processes of the runner import."""

from __future__ import annotations

from prefect import flow, suspend_flow_run, task  # type: ignore[import-not-found]

from benchmarks.others.serving import ASKED, perform_in_thread

step_function = task(perform_in_thread)


@flow  # type: ignore[untyped-decorator]
def asks() -> int:
    """Suspend until a person gives a number, then run the step. It runs from here again when it is resumed."""
    suspend_flow_run(wait_for_input=int)
    return int(step_function(ASKED))
