"""One plan with all that a plan may have below it: agents, child plans and theirs, items of loops of both kinds.

| path | what it is |
| --- | --- |
| `ag` | an agent of the plan |
| `sub/ag` | an agent of a child plan |
| `sub/deep/ag`, `sub/deep/q` | an agent and a question of a child plan's child plan |
| `each[a].ag` | an agent of an item |
| `many[0..0]/many[x]` | an agent of an item that runs in a child plan |

Each agent makes one call that lasts until it is told to end, then one that asks a person, then it answers.
"""

from __future__ import annotations

from typing import Any

from tests.kit.driving import WAITS, Plans, Started
from tests.workflows.agents import Agents, call, says

AGENTS = ("ag", "sub/ag", "sub/deep/ag", "each[a].ag", "many[0..0]/many[x]")
"""The agents, by the path of their step."""
NAMES = ("top", "mid", "low", "a", "x")
"""What each of them is called in its request, in the names of its calls and of its file."""
CALLS = [f"{path}/call_2" for path in AGENTS]
"""What the agents ask, as the plan names it."""
QUESTION = "sub/deep/q"


def _agent(name: str) -> dict[str, Any]:
    return {"id": "ag", "tool": "agent", "args": {"objective": f"AGENT-{name} works."}}


STEPS: list[dict[str, Any]] = [
    _agent("top"),
    {
        "id": "sub", "tool": "plan",
        "args": {"steps": [
            _agent("mid"),
            {"id": "deep", "tool": "plan", "args": {"steps": [
                _agent("low"),
                {"id": "q", "tool": "ask", "args": {"question": "Which?", "choices": ["one", "two"]}},
            ]}},
        ]},
    },
    {"id": "each", "forEach": {"items": ["a"], "key": "@"}, "steps": [_agent("{{item}}")]},
    {"id": "many", "forEach": {"items": ["x"], "key": "@", "mode": "plans", "batch": 1}, **{
        name: value for name, value in _agent("{{item}}").items() if name != "id"
    }},
]  # fmt: skip


def story() -> list[dict[str, Any]]:
    """What the model answers to each agent, whichever comes first."""
    found = []
    for name in NAMES:
        when = {"any": f"AGENT-{name} works."}
        found += [
            says({"tool_calls": [call("work", name=name, **WAITS)]}, when=when),
            says({"tool_calls": [call("delete_file", path=f"{name}.txt")]}, when=when),
            says({"answer": f"{name} is done"}, when=when, times=0),
        ]
    return found


async def started(agents: Agents, **plan: Any) -> Started:
    """The plan, which has begun; the agents' first calls last until `plans.go()`."""
    for name in NAMES:
        (agents.plans.workspace / f"{name}.txt").write_text(name)
    return await agents.plans.start(STEPS, **plan)


def at_work(plans: Plans) -> set[str]:
    """Names of the agents whose first call has begun."""
    return {line[1] for line in plans.ledger if line[0] == "start"}
