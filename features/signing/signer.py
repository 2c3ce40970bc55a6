"""Signs starts and decisions, with a person's or a page's own key where it speaks for them, else with the key of the
state directory (PLANS_DECISIONS=signed): a client interceptor.

A worker hands only the public key to workflows. `model` says what is signed.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    CreateScheduleInput,
    DeleteScheduleInput,
    DescribeWorkflowInput,
    Interceptor,
    OutboundInterceptor,
    ScheduleActionStartWorkflow,
    ScheduleHandle,
    ScheduleUpdate,
    ScheduleUpdateInput,
    SignalWorkflowInput,
    StartWorkflowInput,
    StartWorkflowUpdateInput,
    UpdateScheduleInput,
    WorkflowHandle,
    WorkflowUpdateHandle,
)

from plansurvive.features.signing import schedule_book
from plansurvive.features.signing.model import NONCE, SCHEDULE, SIGNED_MESSAGES, SIGNED_WORKFLOWS, START, with_signature
from plansurvive.features.signing.own_keys import OwnKeys, own_keys
from plansurvive.plans.signature import FIELD
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.state_key import private_key


def signed(
    key: Ed25519PrivateKey, kind: str, workflow_id: str, nonce: str, message: Mapping[str, Any], name: str = "",
    made: int | None = None, by: str = "",
) -> dict[str, Any]:  # fmt: skip
    """The message with its signature. `name`: of the signal, if it is one; `made`: when, in ms since 1970; else now;
    `by`: whose key it is, empty: that of the state directory.
    """
    now = int(time.time() * 1_000) if made is None else made
    return with_signature(key, kind, workflow_id, nonce, message, name, id=secrets.token_hex(16), made=now, by=by)


@dataclass(frozen=True)
class Keys:
    """With what a process signs."""

    machine: Ed25519PrivateKey | None
    """The key of the state directory; None: nobody asks for its signatures."""
    own: OwnKeys

    def of(self, message: Mapping[str, Any], author: object) -> tuple[Ed25519PrivateKey, str] | None:
        """The key that signs a message of this author, and whose it is; None: it is sent without a signature."""
        if (own := self.own.of(message, author)) is not None:
            return own.key, own.signer
        return (self.machine, "") if self.machine else None


class Signer(Interceptor):
    """Signs what a client starts and decides."""

    per_workflow = True
    """See `runtime.feature.sends_to_each`."""

    def __init__(self, settings: Settings, *, machine: bool = True) -> None:
        """`machine`: the key of the state directory signs what is nobody's own. Raises SettingError."""
        key = private_key(settings) if machine else None
        self._keys, self._directory = Keys(key, own_keys(settings)), settings.state_dir

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """The interceptor of one client."""
        return _Signing(next, self._keys, self._directory)


class _Signing(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, keys: Keys, directory: Path) -> None:
        super().__init__(next)
        self._keys, self._directory = keys, directory

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        """Sign the start of a plan, an agent or an undo."""
        message = _only_object(input.args)
        if input.workflow in SIGNED_WORKFLOWS and message is not None:
            # An undo is verified by an activity, which knows the worker's own key alone.
            found = self._keys.of({}, None) if input.workflow == "ChangesWorkflow" else self._of_start(message)
            if found is not None:
                input = replace(input, args=[signed(found[0], START, input.id, "", message, by=found[1])])
        return await super().start_workflow(input)

    async def create_schedule(self, input: CreateScheduleInput) -> ScheduleHandle:
        """Sign what a schedule starts plans with, once for all of its runs."""
        action = input.schedule.action
        if isinstance(action, ScheduleActionStartWorkflow) and action.workflow in SIGNED_WORKFLOWS:
            message = _only_object(action.args)
            if message is not None:
                action.args = [await self._of_schedule(action.id, message)]
        return await super().create_schedule(input)

    async def update_schedule(self, input: UpdateScheduleInput) -> None:
        """Sign anew what a changed schedule starts, and let what was signed before count no more."""

        async def renewed(found: ScheduleUpdateInput) -> ScheduleUpdate | None:
            made = input.updater(found)
            update = await made if inspect.isawaitable(made) else made
            action = update.schedule.action if update else None
            if isinstance(action, ScheduleActionStartWorkflow) and action.workflow in SIGNED_WORKFLOWS:
                args = [each for each in action.args if isinstance(each, Payload)]
                stored = await found.description.data_converter.decode(args) if args else action.args
                if (message := _only_object(stored)) is not None:
                    await asyncio.to_thread(schedule_book.revoke, self._directory, action.id)
                    action.args = [await self._of_schedule(action.id, message)]
            return update

        await super().update_schedule(replace(input, updater=renewed))

    async def delete_schedule(self, input: DeleteScheduleInput) -> None:
        """Let nothing count any more that was signed for a deleted schedule."""
        await super().delete_schedule(input)
        await asyncio.to_thread(schedule_book.revoke, self._directory, f"plan-{input.id}")

    async def _of_schedule(self, workflow_id: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if (found := self._of_start(message)) is None:
            return {name: each for name, each in message.items() if name != FIELD}
        made = await asyncio.to_thread(schedule_book.issue, self._directory, workflow_id)
        return signed(found[0], SCHEDULE, workflow_id, "", message, made=made, by=found[1])

    def _of_start(self, message: Mapping[str, Any]) -> tuple[Ed25519PrivateKey, str] | None:
        """With which key a start is signed, by its options; those of a run that it continues are of the first one."""
        run, agent = message.get("run"), message.get("agent")
        if isinstance(agent, Mapping):  # one that continues
            run = agent.get("run")
        given = (run if isinstance(run, Mapping) else message).get("options")
        options = given if isinstance(given, Mapping) else {}
        if options.get("vouched") is True:
            return self._keys.of({"via": "web"}, None)
        person = self._keys.own.person
        return self._keys.of({}, options.get("by") if run is None else person and person.name)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        """Sign a decision that is sent as a signal."""
        args = await self._signed(input.id, input.signal, input.args)
        await super().signal_workflow(replace(input, args=args))

    async def start_workflow_update(self, input: StartWorkflowUpdateInput) -> WorkflowUpdateHandle[Any]:
        """Sign a decision that is sent as an update."""
        args = await self._signed(input.id, input.update, input.args)
        return await super().start_workflow_update(replace(input, args=args))

    async def _signed(self, workflow_id: str, name: str, args: Sequence[Any]) -> Sequence[Any]:
        message, kind = _only_object(args), SIGNED_MESSAGES.get(name)
        if kind is None or message is None:
            return args
        if kind == "edit" and message.get("via") == "mcp" and message.get("verified") is True:
            # A login makes its owner an author of what their agent edits. It lets no agent decide for them.
            found = self._keys.of({"via": "web"}, None)
        else:
            found = self._keys.of(message, message.get("by"))
        if found is None:
            return args
        description = await self.next.describe_workflow(DescribeWorkflowInput(
            id=workflow_id, run_id=None, rpc_metadata={}, rpc_timeout=None
        ))  # fmt: skip
        nonce = await description.memo_value(NONCE, "")
        return [signed(found[0], kind, workflow_id, nonce, message, name, by=found[1])]


def _only_object(args: Sequence[Any]) -> Mapping[str, Any] | None:
    return args[0] if len(args) == 1 and isinstance(args[0], dict) else None
