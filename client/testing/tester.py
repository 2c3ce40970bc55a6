"""`PlanTester`: runs plans on a Temporal server and a worker of its own, from a test with or without asyncio."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.activities.tools.tool import Tool
from plansurvive.client.embedding.plugin import PlansPlugin
from plansurvive.client.testing.fakes import Fake
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.pending import Pending, pending
from plansurvive.client.verbs.runs import Choice, PlanView, Summary
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import ENDED, Options
from plansurvive.runtime import daemon
from plansurvive.runtime.base.wait import until
from plansurvive.runtime.server import HOST, Server, flags, free_ports
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import find_temporal

Rule = Callable[[Pending], Any]
"""What is decided: True approves, False denies, None leaves it; of a question, the answer."""
_T = TypeVar("_T")
PATIENCE = 60.0
"""Seconds a plan may take, if the test does not say otherwise."""
_EVERY = 0.05


@dataclass(frozen=True)
class Outcome:
    """How a plan ended, and every step of it."""

    summary: Summary
    view: PlanView
    workspace: Path
    asked: Sequence[str]
    """Ids of the steps that a decision was made about, in order."""

    @property
    def status(self) -> str:
        """`completed`, `partial`, `failed` or `cancelled`."""
        return self.summary.status.value

    def value(self, step: str) -> Any:
        """The value of a step. Raises LookupError if it has none."""
        found = self.view.step(step)
        if found is None or found.result is None or not found.result.ok:
            raise LookupError(f"step '{step}' has no value; it is {found.status if found else 'not in the plan'}")
        return found.result.value


class PlanTester:
    """A server and workers for tests; use it as a context manager, one for many plans.

    `address`: HOST:PORT of a server that runs already, such as one that skips time; without it a development server in
    memory is started on free ports. `environ`: settings (PLANS_*) of the workers, none of those of this process; the
    state directory is one of the tester's own.
    """

    def __init__(self, *, address: str | None = None, environ: Mapping[str, str] | None = None) -> None:
        self._address, self._environ = address, dict(environ or {})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="plans", daemon=True)
        self._server: Server | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="plans-test-", ignore_cleanup_errors=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            if self._address is None:
                self._server = self._do(self._started())
                self._address = self._server.address
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._do(self._server.stop(grace=0))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()

    @property
    def address(self) -> str:
        """HOST:PORT of the server, for clients of the test."""
        return str(self._address)

    def run(
        self, plan: Mapping[str, Any], workspace: Path, *, inputs: Mapping[str, Any] | None = None,
        approve: Rule | None = None, fakes: Sequence[Fake] = (), tools: Sequence[Tool] = (),
        options: Options | None = None, patience: float = PATIENCE,
    ) -> Outcome:  # fmt: skip
        """Run a plan to its end in a workspace, with a worker of its own.

        `approve`: decides what the plan asks; without it, a plan that asks raises. `fakes`: take the place of tools.
        `tools`: tools of yours, beside the built-in ones. `patience`: seconds until TimeoutError, which names the steps
        that the plan waits for. Raises InvalidPlan, and PlanError UNDECIDED for a request that nothing decides.
        """
        return self._do(self._run(plan, workspace, inputs, approve, fakes, tools, options, patience))

    async def _run(
        self, plan: Mapping[str, Any], workspace: Path, inputs: Mapping[str, Any] | None, approve: Rule | None,
        fakes: Sequence[Fake], tools: Sequence[Tool], options: Options | None, patience: float,
    ) -> Outcome:  # fmt: skip
        queue = f"test-{uuid.uuid4().hex[:12]}"
        state = {"PLANS_STATE_DIR": self._folder.name, "PLANS_TASK_QUEUE": queue, "PLANS_WORKSPACE": str(workspace)}
        kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        settings = Settings.read(kept | self._environ | state)
        own = [each for each in tools if each.spec.name not in {fake.tool.spec.name for fake in fakes}]
        own += [each.tool for each in fakes if each.tool.spec.name in {tool.spec.name for tool in tools}]
        taken = {each.tool.spec.name: each.tool for each in fakes if each.tool not in own}
        plugin = PlansPlugin(settings, tools=own, replaced=taken)
        client = await Client.connect(str(self._address), plugins=[plugin])
        chosen = (options or Options()).model_copy(
            update={"workspace": str(workspace), **({"inputs": dict(inputs)} if inputs else {})}
        )
        async with AsyncExitStack() as running:
            await running.enter_async_context(Worker(client, task_queue=queue))
            started = await runs.start(client, dict(plan), options=chosen, queue=queue)
            try:
                async with asyncio.timeout(patience):
                    asked = await self._followed(client, started.plan_id, approve)
                    summary = await runs.wait(client, started.plan_id)
            except TimeoutError:
                found = await runs.brief(client, started.plan_id)
                running_steps = [each.id for each in found.steps if each.status == "running"]
                problem = f"the plan has not ended within {patience:g} s; it is {found.status.value}"
                raise TimeoutError(f"{problem}, running: {', '.join(running_steps) or 'nothing'}") from None
            view = await runs.show(client, started.plan_id)
        return Outcome(summary, view, workspace, asked)

    async def _followed(self, client: Client, plan: str, approve: Rule | None) -> list[str]:
        asked: dict[tuple[str, str], str] = {}
        while (await runs.brief(client, plan)).status not in ENDED:
            async for each in pending(client, plan=plan):
                if (each.step_id, each.digest) not in asked:
                    await _decided(client, each, approve)
                    asked[each.step_id, each.digest] = each.step_id
            await asyncio.sleep(_EVERY)
        return list(asked.values())

    async def _started(self) -> Server:
        folder = Path(self._folder.name)
        found = await find_temporal(Settings.read({**os.environ, **self._environ}))
        port, ui_port = free_ports(0, 0)
        log = folder / "server.log"
        pid, began = daemon.start([str(found), *flags(port, ui_port, None)], log, os.environ)
        server = Server(pid=pid, began=began, address=f"{HOST}:{port}", ui=f"http://{HOST}:{ui_port}")
        await until(lambda: server.accepts() or not server.is_alive())
        if not server.is_alive():
            raise PlanError(f"the Temporal server exited immediately: {daemon.tail(log)}", "NO_TEMPORAL")
        return server

    def _do(self, work: Coroutine[Any, Any, _T]) -> _T:
        done: Future[_T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result()


async def _decided(client: Client, asked: Pending, approve: Rule | None) -> None:
    """Decide as the rule says. Raises PlanError UNDECIDED if it says nothing."""
    found = approve(asked) if approve else None
    if found is None:
        reasons = "; ".join(asked.reasons)
        raise PlanError(f"step '{asked.step_id}' asks, and no rule decides it: {reasons}", "UNDECIDED")
    choice = Choice(step_id=asked.step_id, by="the test", version=asked.version, digest=asked.digest)
    if asked.is_question:
        await runs.answer(client, asked.plan_id, asked.step_id, found, by=choice.by, digest=asked.digest)
    elif found:
        await runs.approve(client, asked.plan_id, choice)
    else:
        await runs.deny(client, asked.plan_id, choice)
