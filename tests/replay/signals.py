"""The plan with signals of every kind whose history is kept: its receipts of them pass through continue-as-new."""

from __future__ import annotations

from tests.kit.driving import Plans, Started, work

CHAIN = ("first", "s0", "s1", "s2", "s3", "second")


async def signals_continued(plans: Plans) -> Started:
    """Signals that are refused, that become void and that count, before and after continue-as-new."""
    asks = {"requiresApproval": True}
    steps = [work("first", **asks), *(work(name, CHAIN[n]) for n, name in enumerate(CHAIN[1:-1]))]
    started = await plans.start([*steps, work("second", CHAIN[-2], **asks)], {"historyLimit": 12})
    await started.until_asked("first")
    await started.signal("edit", {"edits": [{"op": "skip", "stepId": "s0"}], "by": "eve"})
    await started.approve("nowhere", by="eve")
    await started.approve("first", by="eve", version=7)
    await started.deny("first", by="eve", digest="0" * 64)
    await started.signal("pause", {"by": "ann"})
    await started.approve("first", by="ann")
    change = [{"op": "set", "stepId": "first", "path": "args.value", "value": 2}]
    await started.handle.execute_update("edit", {"edits": change, "by": "ann"})
    await started.signal("unpause", {"by": "ann"})
    await started.until_logged("void")
    shown = await started.until_asked("first")
    await started.approve("first", by="ann", version=shown["version"])
    await started.until_asked("second")
    await started.signal("unpause", {"by": "eve"})
    await started.deny("second", by="ann")
    await started.ended()
    return started


SIGNALS = {"signals-continued": signals_continued}
