"""Restate: a workflow that runs each step as a durable `run` as soon as what it depends on is done.

Hypercorn serves it. Arguments: folder, port of this process, URL of the server's ingress, URL of its admin API.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httpx
import hypercorn.asyncio  # type: ignore[import-not-found]
import restate  # type: ignore[import-not-found]

from benchmarks.others.serving import ASKED, Call, Engine, Steps, Waits, call_of, perform, serve

PORT, INGRESS, ADMIN = sys.argv[2:]
workflow = restate.Workflow("graph")
asking = restate.Workflow("asking")
waiting: set[str] = set()
"""Keys of the workflows that have begun to wait, in this process."""


async def _run(context: Any, steps: Steps) -> int:
    """Start what is ready, wait until something is done; the order is in the journal."""
    dependents: dict[str, list[dict[str, Any]]] = {step["id"]: [] for step in steps}
    missing = {step["id"]: len(step["dependsOn"]) for step in steps}
    for step in steps:
        for name in step["dependsOn"]:
            dependents[name].append(step)
    ready, running, done = [step for step in steps if not step["dependsOn"]], dict[Any, str](), 0
    while ready or running:
        for step in ready:
            options = restate.RunOptions(type_hint=int)
            running[context.run_typed(step["id"], perform, options, call=call_of(step))] = step["id"]
        ready = []
        ended, _ = await restate.wait_completed(*running)
        for future in ended:
            done += 1
            await future
            for step in dependents[running.pop(future)]:
                missing[step["id"]] -= 1
                if not missing[step["id"]]:
                    ready.append(step)
    return done


async def _asks(context: Any, call: Call) -> int:
    """Await a promise of this workflow, then run the step."""
    waiting.add(context.key())
    await context.promise("answer", type_hint=str)
    return int(await context.run_typed(call["id"], perform, restate.RunOptions(type_hint=int), call=call))


async def _answer(context: Any, text: str) -> str:
    await context.promise("answer", type_hint=str).resolve(text)
    return text


workflow.main("run")(_run)
asking.main("run")(_asks)
asking.handler("answer")(_answer)


async def main() -> None:
    """Serve, register once, answer requests."""
    config = hypercorn.Config()
    config.bind = [f"127.0.0.1:{PORT}"]
    # What the documentation of the SDK sets for production.
    config.h2_max_concurrent_streams = config.keep_alive_max_requests = config.keep_alive_timeout = 2_147_483_647
    config.loglevel = "ERROR"
    stopped = asyncio.Event()
    serving = asyncio.create_task(
        hypercorn.asyncio.serve(restate.app([workflow, asking]), config, shutdown_trigger=stopped.wait)
    )
    async with httpx.AsyncClient(timeout=None) as client:

        async def post(url: str, given: Any) -> Any:
            response = await client.post(url, json=given)
            response.raise_for_status()
            return response.json()

        async def run(steps: Steps, name: str) -> int:
            return int(await post(f"{INGRESS}/graph/{name}/run", steps))

        async def resume(_: Steps, __: str) -> None:
            """Nothing: the server calls this process again."""

        async def result(_: Steps, name: str) -> int:
            response = await client.get(f"{INGRESS}/restate/workflow/graph/{name}/attach")
            response.raise_for_status()
            return int(response.json())

        async def wait(name: str) -> None:
            """Start a workflow, until it is about to await its promise."""
            await post(f"{INGRESS}/asking/{name}/run/send", ASKED)
            while name not in waiting:
                await asyncio.sleep(0.01)

        async def answer(name: str) -> None:
            """Call the handler that resolves the promise."""
            await post(f"{INGRESS}/asking/{name}/answer", "yes")

        async def ended(name: str) -> bool:
            """Whether there is an output yet."""
            return (await client.get(f"{INGRESS}/restate/workflow/asking/{name}/output")).status_code == 200

        await post(f"{ADMIN}/deployments", {"uri": f"http://127.0.0.1:{PORT}"})
        await serve(Engine("restate_sdk", run, resume, result, Waits(wait, answer, ended)))
    stopped.set()
    await serving


asyncio.run(main())
