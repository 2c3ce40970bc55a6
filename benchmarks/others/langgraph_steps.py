"""LangGraph: a node for each step, an edge for each dependency, checkpoints in SQLite.

Arguments: folder, durability.
"""

from __future__ import annotations

import asyncio
import operator
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # type: ignore[import-not-found]
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]
from langgraph.types import Command, interrupt  # type: ignore[import-not-found]

from benchmarks.others.serving import ASKED, Engine, Steps, Waits, call_of, perform, serve


class State(TypedDict):
    """Results by step id."""

    done: Annotated[dict[str, int], operator.or_]


def compiled(steps: Steps, saver: Any) -> Any:
    """Compile the steps into a graph."""
    graph = StateGraph(State)
    needed = {name for step in steps for name in step["dependsOn"]}
    for step in steps:
        graph.add_node(step["id"], _node(step))
        if step["dependsOn"]:
            graph.add_edge(step["dependsOn"], step["id"])
        else:
            graph.add_edge(START, step["id"])
        if step["id"] not in needed:
            graph.add_edge(step["id"], END)
    return graph.compile(checkpointer=saver)


def _node(step: dict[str, Any]) -> Any:
    async def node(_: State) -> dict[str, Any]:
        return {"done": {step["id"]: await perform(call_of(step))}}

    return node


async def _ask(_: State) -> dict[str, Any]:
    interrupt("go on?")
    return {"done": {}}


async def _asked(_: State) -> dict[str, Any]:
    return {"done": {ASKED["id"]: await perform(ASKED)}}


def asking(saver: Any) -> Any:
    """Compile a graph that asks, and then runs its step."""
    graph = StateGraph(State)
    graph.add_node("ask", _ask)
    graph.add_node(ASKED["id"], _asked)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", ASKED["id"])
    graph.add_edge(ASKED["id"], END)
    return graph.compile(checkpointer=saver)


async def main(folder: Path, durability: str) -> None:
    """Serve until standard input ends."""
    async with AsyncSqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:

        def config(steps: Steps, name: str) -> dict[str, Any]:
            return {"configurable": {"thread_id": name}, "recursion_limit": len(steps) + 10}

        async def run(steps: Steps, name: str) -> int:
            found = await compiled(steps, saver).ainvoke({"done": {}}, config(steps, name), durability=durability)
            return len(found["done"])

        async def resume(steps: Steps, name: str) -> None:
            """Invoke the thread again without input; with its input where no checkpoint was written."""
            graph = compiled(steps, saver)
            begun = (await graph.aget_state(config(steps, name))).next
            await graph.ainvoke(None if begun else {"done": {}}, config(steps, name), durability=durability)

        async def result(steps: Steps, name: str) -> int:
            graph = compiled(steps, saver)
            while (state := await graph.aget_state(config(steps, name))).next or not state.values:
                await asyncio.sleep(0.1)
            return len(state.values["done"])

        asks = asking(saver)

        async def wait(name: str) -> None:
            """Run until the interrupt, which ends the call."""
            await asks.ainvoke({"done": {}}, config([], name), durability=durability)

        async def answer(name: str) -> None:
            """Invoke the thread with the answer: this call runs the rest."""
            await asks.ainvoke(Command(resume="yes"), config([], name), durability=durability)

        async def ended(name: str) -> bool:
            state = await asks.aget_state(config([], name))
            return not state.next and ASKED["id"] in state.values.get("done", {})

        await serve(Engine("langgraph", run, resume, result, Waits(wait, answer, ended)))


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
