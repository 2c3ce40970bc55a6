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

from benchmarks.others.serving import Engine, Steps, call_of, perform, serve


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

        await serve(Engine("langgraph", run, resume, result))


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
