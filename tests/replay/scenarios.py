"""The plans whose histories are kept: one per thing a workflow can do. Each starts a plan and sees it to its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.kit.driving import Plans, Started, work
from tests.replay.agents import AGENTS
from tests.replay.agents import TALKS as AGENT_TALKS
from tests.replay.child_plans import CHILD_PLANS
from tests.replay.child_plans import TALKS as CHILD_TALKS
from tests.replay.closings import CLOSINGS
from tests.replay.coding_agents import CODING_AGENTS
from tests.replay.hosts import HOSTS
from tests.replay.limited import LIMITED
from tests.replay.locks import LOCKS
from tests.replay.loops import LOOPS
from tests.replay.notified import NOTIFIED
from tests.replay.outputs import OUTPUTS
from tests.replay.ruled import RULED
from tests.replay.schedules import SCHEDULED
from tests.replay.segments import SEGMENTS
from tests.replay.server_tools import SERVER_TOOLS
from tests.replay.signals import SIGNALS
from tests.replay.waiting import WAITING

Scenario = Callable[[Plans], Awaitable[Started]]
REFUSE = {"id": "bad", "tool": "refuse", "args": {"code": "CONFLICT"}}


def gate(step_id: str = "gate", *needs: str, **more: Any) -> dict[str, Any]:
    """A step that a person must approve."""
    return work(step_id, *needs, requiresApproval=True, **more)


def run(*steps: dict[str, Any], options: dict[str, Any] | None = None, **plan: Any) -> Scenario:
    """A plan that needs nobody."""

    async def scenario(plans: Plans) -> Started:
        started = await plans.start(list(steps), options, **plan)
        await started.ended()
        return started

    return scenario


def send(
    *messages: tuple[Any, ...], wait_for: str | None = "gate", steps: list[dict[str, Any]] | None = None
) -> Scenario:
    """A plan with a gate that is sent signals once the gate asks; `wait_for` None: at once."""

    async def scenario(plans: Plans) -> Started:
        started = await plans.start(steps or [work("a"), gate("gate", "a"), work("b", "gate")])
        if wait_for:
            await started.until_asked(wait_for)
        for name, *arguments in messages:
            await started.signal(name, *arguments)
        await started.ended()
        return started

    return scenario


async def decided(plans: Plans) -> Started:
    """Decisions by update: a refused one, then one that counts."""
    started = await plans.start([gate(), gate("other")])
    await started.until_asked("other")
    await started.handle.execute_update("decide", {"stepId": "gate", "approved": True, "by": "ann"})
    await started.handle.execute_update("decide", {"stepId": "other", "approved": False})
    await started.ended()
    return started


async def bound(plans: Plans) -> Started:
    """An early approval of a step whose values were not known, one of what has changed since, and one that counts."""
    steps = [work("a"), gate("gate", args={"value": "{{a}}"}), gate("other", "gate")]
    started = await plans.start(steps)
    await started.approve("gate")
    await started.until_asked("gate")
    await started.handle.execute_update(
        "edit", edits({"op": "set", "stepId": "gate", "path": "args.value", "value": "b"})
    )
    await started.until(lambda view: [each["args"]["value"] for each in view["pending"]] == ["b"], "it asks again")
    await started.approve("gate")
    await started.until_logged("refused", "DIGEST_REQUIRED")
    await started.approve("gate", digest=(await started.handle.query("call", {"stepId": "gate"}))["digest"])
    await started.until_asked("other")
    await started.approve("other", args={"name": "other", "value": 5})
    await started.ended()
    return started


async def rewritten(plans: Plans) -> Started:
    """An approver changes arguments; decisions about the version before, on another step and on an edited one."""
    started = await plans.start([gate("first"), gate("second"), gate("third")])
    await started.until(lambda view: len(view["pending"]) == 3, "all ask")
    await started.approve("first", by="ann", args={"name": "other", "seconds": 0.0})
    await started.approve("second", by="bob", version=1)
    await started.handle.execute_update(
        "edit", edits({"op": "set", "stepId": "third", "path": "args.name", "value": "edited"})
    )
    await started.until(lambda view: view["pending"] and view["version"] == 3, "it asks again")
    await started.approve("third", version=2)
    await started.until_logged("refused", "STALE_VERSION")
    await started.deny("third", by="cy", version=3, comment="not this")
    await started.ended()
    return started


async def paused(plans: Plans) -> Started:
    """A pause while a step runs, and its end."""
    started = await plans.start([work("a", seconds=0.3), work("b", "a"), work("c", "a")])
    await started.until_status("a", "running")
    await started.signal("pause", {"by": "ann"})
    await started.until_status("a", "completed")
    await started.signal("unpause")
    await started.ended()
    return started


async def reviewed(plans: Plans) -> Started:
    """A plan that waits to be begun."""
    started = await plans.start([work("a"), work("b", "a")], {"review": True})
    await started.until(lambda view: view["status"] == "review", "review")
    await started.signal("begin", {"by": "ann"})
    await started.ended()
    return started


async def cancelled(plans: Plans) -> Started:
    """A plan cancelled while a step runs, one sleeps and one asks."""
    nap = {"id": "nap", "tool": "sleep", "args": {"seconds": 600.0}}
    rule = {"timeout": 600.0}
    started = await plans.start([work("long", seconds=60.0), nap, gate(approval=rule), work("after", "long")])
    await started.until_asked("gate")
    await started.until_status("long", "running")
    await started.handle.cancel()
    await started.ended()
    return started


async def overwritten(plans: Plans) -> Started:
    """A tool that finds it needs a person's word."""
    (plans.workspace / "theirs.txt").write_text("theirs")
    started = await plans.start([{"id": "w", "tool": "write_file", "args": {"path": "theirs.txt", "content": "ours"}}])
    await started.until_asked("w")
    await started.approve("w")
    await started.ended()
    return started


async def large(plans: Plans) -> Started:
    """A value too large for history, used whole and inside a text."""
    (plans.workspace / "big.txt").write_text("0123456789\n" * 20_000)
    read = {"id": "read", "tool": "read_file", "args": {"path": "big.txt"}}
    copy = {"id": "copy", "tool": "write_file", "args": {"path": "copy.txt", "content": "$read"}}
    part = {"id": "part", "tool": "write_file", "args": {"path": "part.txt", "content": "<{{read}}>"}}
    return await run(read, copy, part)(plans)


def edits(*changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The message of an `edit`."""
    return {"edits": list(changes), **more}


async def edited(plans: Plans) -> Started:
    """Edits in review and while the plan runs, with a tool it did not have before; an approval that becomes void."""
    started = await plans.start([work("a"), gate("gate", "a"), work("b", "gate")], {"review": True})
    await started.until(lambda view: view["status"] == "review", "review")
    update = started.handle.execute_update
    await update("edit", edits({"op": "skip", "stepId": "a"}, {"op": "add", "step": work("c"), "after": "a"}))
    await started.signal("begin", {})
    await started.until_asked("gate")
    await started.signal("pause", {})
    await started.approve("gate")
    await update("edit", edits({"op": "set", "stepId": "gate", "path": "args.value", "value": 2}))
    await started.signal("unpause", {})
    await started.until_asked("gate")
    await started.approve("gate", version=3)
    await started.ended()
    return started


async def extended(plans: Plans) -> Started:
    """A step with a tool the plan did not name, added while it runs."""
    started = await plans.start([gate(), work("b", "gate")])
    await started.until_asked("gate")
    step = {"id": "note", "tool": "write_file", "args": {"path": "note.txt", "content": "n"}}
    await started.handle.execute_update("edit", edits({"op": "add", "step": step}))
    await started.until_status("note", "completed")
    await started.approve("gate")
    await started.ended()
    return started


async def placed(plans: Plans) -> Started:
    """An edit brings the first loop whose items take places; each asks when it has begun its work."""
    started = await plans.start([gate()])
    await started.until_asked("gate")
    steps = [work("in", args={"name": "{{item}}"}), gate("out", "in", args={"name": "{{item}}"})]
    loop = {"id": "each", "forEach": {"items": ["a", "b", "c"], "key": "@", "maxParallel": 1}, "steps": steps}
    await started.handle.execute_update("edit", edits({"op": "add", "step": loop}))
    await started.until(lambda view: len(view["pending"]) == 4, "all items ask")
    await started.approve("each[*].out")
    await started.approve("gate")
    await started.ended()
    return started


def request(options: dict[str, Any], *steps_to_mend: str) -> Scenario:
    """A plan that the LLM writes, revises and mends."""

    async def scenario(plans: Plans) -> Started:
        given = {"workspace": str(plans.workspace), **options}
        fields = {"defaults": {"onFailure": "ask_llm", "approveRecovery": bool(steps_to_mend)}}
        started = await plans.start_with({"request": "copy the notes", "plan": fields, "options": given})
        if options.get("review"):
            await started.until(lambda view: view["status"] == "review", "review")
            await started.handle.execute_update("regenerate", {"feedback": "again"})
            await started.signal("begin", {})
        if steps_to_mend:
            await started.until(lambda view: view["pending"], "a person is asked")
            await started.approve(*steps_to_mend)
        await started.ended()
        return started

    return scenario


async def regenerated(plans: Plans) -> Started:
    """A plan that the LLM revises while it runs: its tools are asked for first; what was asked for is gone."""
    started = await plans.start([work("a"), gate("gate", "a"), work("b", "gate")])
    await started.until_asked("gate")
    await started.handle.execute_update("regenerate", {"feedback": "read it instead", "by": "ann"})
    await started.signal("begin", {"by": "ann"})
    await started.ended()
    return started


MISSING = {"id": "read", "tool": "read_file", "args": {"path": "missing.txt"}, "description": "Read", "dependsOn": []}
MADE = {"id": "make", "tool": "write_file", "args": {"path": "missing.txt", "content": "x"}, "dependsOn": []}
LLM: list[dict[str, Any]] = [
    {"when": {"schema": "plan"}, "reply": {"text": "no plan"}},
    {"when": {"schema": "plan"}, "reply": {"json": {"title": "Copy", "steps": [MISSING]}}, "times": 0},
    {"when": {"schema": "recovery"}, "reply": {"json": {"action": "insert", "steps": [MADE], "reason": "missing"}}},
]
"""What the LLM of a recording says."""
TALKS = (
    AGENT_TALKS
    | CHILD_TALKS
    | {
        "request-judged": [
            {"when": {"schema": "plan"}, "reply": {"text": "no plan"}},
            {"when": {"schema": "plan"}, "reply": {"json": {"steps": [MISSING | {"tool": "no_such_tool"}]}}},
            {"when": {"schema": "plan"}, "reply": {"json": {"title": "Copy", "steps": [MISSING]}}},
            {"when": {"schema": "recovery"}, "reply": {"json": {"action": "retry", "steps": [MADE], "reason": "try"}}},
            {
                "when": {"schema": "recovery"},
                "reply": {"json": {"action": "insert", "steps": [MISSING], "reason": "it"}},
            },
            {
                "when": {"schema": "recovery"},
                "reply": {"json": {"action": "insert", "steps": [MADE], "reason": "missing"}},
            },
        ],
    }
)
"""What it says in a recording of its own kind."""

CHAIN = [work("s0"), *(work(f"s{number}", f"s{number - 1}") for number in range(1, 6))]
LAYERS = [
    work(f"l{layer}n{node}", *(f"l{layer - 1}n{other}" for other in range(4) if layer))
    for layer in range(4)
    for node in range(4)
]
VALUES = [
    work("source", args={"value": {"rows": [{"n": 1}, {"n": 2}]}}),
    work("part", args={"value": "$source.rows[1].n"}),
    work("text", args={"value": "{{part}} of {{inputs.total}}"}),
]
MALFORMED: list[tuple[Any, ...]] = [
    *(
        (name, *shape)
        for name in ("approve", "deny", "pause", "nonsense")
        for shape in ((None,), ("x",), (1, 2), ({"a": 1},))
    ),
    ("unpause",),
    ("approve", {"stepId": "nowhere"}),
    ("approve", {"stepId": "gate"}),
]

COSTLY = "inputs.x" + "|[@,@][]" * 16 + "|length(@) > `{}`"
"""Half a million units of work: after six of them a workflow task rests."""

SCENARIOS: dict[str, Scenario] = {
    "partial-fails": run(work("a"), REFUSE, work("c", "bad")),
    "chain": run(*CHAIN, title="Chain"),
    "fan-out": run(*(work(f"s{number}") for number in range(12)), work("end", *(f"s{number}" for number in range(12)))),
    "layers": run(*LAYERS),
    "limited": run(*(work(f"s{number}") for number in range(8)), maxParallel=2),
    "values": run(*VALUES, inputs={"total": {"type": "integer", "default": 3}}),
    "large": large,
    "conditions": run(
        work("n", args={"value": 3}), work("no", when="n > `5`"), work("yes", when="n < `5`"), work("z", "no")
    ),
    "approval": send(("approve", {"stepId": "gate", "by": "ann", "args": {"name": "gate", "value": 5}})),
    "approval-early": send(
        ("approve", {"stepId": "gate"}), wait_for=None, steps=[work("a", seconds=0.3), gate("gate", "a")]
    ),
    "approval-twice": send(
        ("approve", {"stepId": "gate"}), ("deny", {"stepId": "gate"}), ("approve", {"stepId": "gate"})
    ),
    "approval-timeout": run(
        *(gate(rule, approval={"timeout": 0.3, "onTimeout": rule}) for rule in ("deny", "approve", "fail"))
    ),
    "approval-bound": bound,
    "approval-rewritten": rewritten,
    "denial": send(("deny", {"stepId": "gate", "by": "ann"})),
    "decide": decided,
    "overwrite": overwritten,
    "retry": run(work("a", args={"fails": 1}, retry={"attempts": 3, "delay": 0.05}), work("b", "a")),
    "attempts": run(
        work("a", args={"fails": 2}, retry={"delay": 0.05}), work("b", args={"fails": 9}, retry={"delay": 0.05})
    ),
    "recovery-tools": run(MISSING, defaults={"onFailure": "ask_llm"}),
    "failure": run(REFUSE, work("after", "bad"), work("beside")),
    "critical": run({**REFUSE, "critical": True}, work("slow", seconds=0.3), work("after", "slow")),
    "timeout": run(work("slow", seconds=9.0, timeout=0.2, retry={"attempts": 1})),
    "pause": paused,
    "review": reviewed,
    "edit": edited,
    "edit-tools": extended,
    "edit-places": placed,
    "request": request({}),
    "request-reviewed": request({"review": True}, "read"),
    "regenerate": regenerated,
    "cancel": cancelled,
    "sleep": run({"id": "nap", "tool": "sleep", "args": {"seconds": 0.3}}, work("a", "nap"), work("b")),
    "malformed": send(*MALFORMED),
    "invalid": run(work("a", "missing")),
    "continued": run(
        *CHAIN, *VALUES, inputs={"total": {"type": "integer", "default": 3}}, options={"historyLimit": 12}
    ),
    "continued-timers": run(
        {"id": "nap", "tool": "sleep", "args": {"seconds": 1.0}},
        gate(approval={"timeout": 1.0, "onTimeout": "approve"}),
        *CHAIN,
        options={"historyLimit": 12},
    ),
    "rest": run(
        *(work(f"s{number}", when=COSTLY.format(number)) for number in range(8)),
        inputs={"x": {"type": "array", "default": [1, 2]}},
    ),
    "end-record": run(work("a"), work("b", "a"), title="Its record is named by the memo"),
    **AGENTS,
    **CODING_AGENTS,
    **CHILD_PLANS,
    **OUTPUTS,
    **SCHEDULED,
    **WAITING,
    **CLOSINGS,
    **LOCKS,
    **LOOPS,
    **NOTIFIED,
    **LIMITED,
    **SERVER_TOOLS,
    **HOSTS,
    **SIGNALS,
    **SEGMENTS,
    **RULED,
}
