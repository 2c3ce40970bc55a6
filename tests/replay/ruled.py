"""Plans under a policy or a quota of their worker, whose histories are kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from plansurvive.runtime.settings import Settings
from tests.kit.driving import WAITS, Plans, Started, work

Scenario = Callable[[Plans], Awaitable[Started]]
POLICY = """
[[rule]]
name = "what asks"
tool = "work"
args.name = "asks*"
decide = "ask"
[[rule]]
name = "what needs no asking"
tool = "work"
args.name = "free*"
decide = "allow"
[[rule]]
name = "never"
tool = "work"
args.name = "never*"
decide = "deny"
"""
QUOTAS = """
[labels]
customer = 1
"""


async def judged(plans: Plans) -> Started:
    """One call that the policy asks for, one that it allows, one that it denies and that is caught."""
    caught = {
        "id": "tried",
        "steps": [work("never")],
        "catch": [{"codes": ["POLICY_DENIED"], "steps": [work("instead")]}],
    }
    started = await plans.start([work("asks"), work("free", "asks"), caught, work("end", "free", "tried")])
    await started.until_asked("asks")
    await started.approve("asks", by="ann")
    await started.ended()
    return started


async def denied(plans: Plans) -> Started:
    """What the policy asks for is denied."""
    started = await plans.start([work("asks"), work("after", "asks")])
    await started.until_asked("asks")
    await started.deny("asks", by="ann")
    await started.ended()
    return started


async def withdrawn(plans: Plans) -> Started:
    """A decision is taken back while the plan is paused, and made again by somebody else."""
    started = await plans.start([work("asks"), work("after", "asks")])
    await started.until_asked("asks")
    await started.signal("pause")
    await started.until(lambda view: view["status"] == "paused", "it is paused")
    await started.handle.execute_update("decide", {"stepId": "asks", "approved": True, "by": "ann"})
    await started.handle.execute_update("withdraw", {"stepId": "asks", "by": "ann", "comment": "not yet"})
    await started.handle.execute_update("decide", {"stepId": "asks", "approved": True, "by": "bob"})
    await started.signal("unpause")
    await started.ended()
    return started


async def queued(plans: Plans) -> Started:
    """A plan that waits until another one of its label has ended."""
    first = await plans.start([work("first", args=WAITS)], labels={"customer": "acme"})
    await first.until_status("first", "running")
    second = await plans.start([work("second")], labels={"customer": "acme"})
    await second.until(lambda view: view.get("notices", {}).get("quotas"), "it waits")
    plans.go()
    await first.ended()
    await second.ended()
    return second


RULED: Mapping[str, Scenario] = {
    "policy": judged, "policy-denied": denied, "policy-withdrawn": withdrawn, "quota": queued,
}  # fmt: skip
FILES = {
    **{name: {"policy.toml": POLICY} for name in ("policy", "policy-denied", "policy-withdrawn")},
    "quota": {"quotas.toml": QUOTAS},
}
"""What is in the state directory of the worker, by scenario."""


@contextmanager
def ruling(name: str, settings: Settings) -> Iterator[None]:
    """Write the files of a scenario, and remove them at the end."""
    settings.make_state_dir()
    paths = [settings.state_dir / each for each in FILES.get(name, {})]
    for path in paths:
        path.write_text(FILES[name][path.name])
        path.chmod(0o600)
    try:
        yield
    finally:
        for path in paths:
            path.unlink()
