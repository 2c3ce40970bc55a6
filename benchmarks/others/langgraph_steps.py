"""LangGraph: a node for each step, an edge for each dependency, every superstep checkpointed in SQLite."""

from __future__ import annotations

import asyncio
import operator
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # type: ignore[import-not-found]
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]

from benchmarks.others.timing import Steps, report


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
    async def noop(_: State) -> dict[str, Any]:
        return {"done": {step["id"]: step["args"]["number"]}}

    return noop


async def main() -> None:
    """Run the graphs from standard input."""
    database = Path(sys.argv[1]) / "langgraph.db"
    async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:

        async def run(steps: Steps, name: str) -> int:
            config = {"configurable": {"thread_id": name}, "recursion_limit": len(steps) + 10}
            found = await compiled(steps, saver).ainvoke({"done": {}}, config, durability="sync")
            return len(found["done"])

        await report("langgraph", "SQLite checkpoints, durability=sync", run)


asyncio.run(main())
