"""Workflows of one activity each, to see what a real server makes of `ask_llm` and `snapshot_workspace`."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from plansurvive.plans.llm.request import LlmAnswer, LlmRequest
    from plansurvive.plans.llm.snapshot import Snapshot, SnapshotRequest
    from plansurvive.workflows import policies


@workflow.defn
class AskOnce:
    """Asks one question, as a workflow of ours does."""

    @workflow.run
    async def run(self, asked: LlmRequest) -> LlmAnswer:
        """The answer."""
        answer: LlmAnswer = await workflow.execute_activity(
            "ask_llm",
            asked,
            result_type=LlmAnswer,
            start_to_close_timeout=policies.ASK_LLM.start_to_close,
            heartbeat_timeout=policies.HEARTBEAT_TIMEOUT,
            retry_policy=policies.ASK_LLM.retry_policy,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        return answer


@workflow.defn
class LookOnce:
    """Takes one snapshot."""

    @workflow.run
    async def run(self, asked: SnapshotRequest) -> Snapshot:
        """The snapshot."""
        taken: Snapshot = await workflow.execute_activity(
            "snapshot_workspace",
            asked,
            result_type=Snapshot,
            start_to_close_timeout=policies.SNAPSHOT.start_to_close,
            retry_policy=policies.SNAPSHOT.retry_policy,
        )
        return taken
