"""The workflow sandbox loads nothing of ours again for a run: all is passed through, by the one list of the runner."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Collection

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import SandboxImportNotificationPolicy

from plansurvive.features.workflow_types import WORKFLOWS
from plansurvive.runtime.workflow_runner import PASSED_THROUGH
from tests.test_imports import modules


async def loaded_again(passed: Collection[str]) -> set[str]:
    """The modules that are loaded again for a run when these are passed through."""
    policy = SandboxImportNotificationPolicy.WARN_ON_UNINTENTIONAL_PASSTHROUGH
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*passed)
    runner = SandboxedWorkflowRunner(restrictions=restrictions.with_import_notification_policy(policy))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        replayer = Replayer(workflows=WORKFLOWS, workflow_runner=runner, data_converter=pydantic_data_converter)
        await replayer.replay_workflows(_no_histories())  # it loads every workflow in the sandbox first
    named = [str(warning.message).split() for warning in caught]
    return {words[1] for words in named if words[0] == "Module" and "intentionally" in words}


async def _no_histories() -> AsyncIterator[WorkflowHistory]:
    none: list[WorkflowHistory] = []
    for history in none:
        yield history


async def test_the_sandbox_loads_nothing_of_ours_again() -> None:
    assert await loaded_again(PASSED_THROUGH) == set()


@pytest.mark.slow
async def test_a_module_missing_from_the_list_is_caught() -> None:
    less = [name for name in PASSED_THROUGH if name != "plansurvive"]
    assert {"plansurvive.plans.run", "plansurvive.plans.model"} <= await loaded_again(less)


def test_no_module_of_the_workflows_passes_others_through_by_itself() -> None:
    found = {path.name for path in modules("workflows") if "imports_passed_through" in path.read_text()}
    assert not found
