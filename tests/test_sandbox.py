"""What the workflow sandbox loads again for every run: the modules that define a workflow, and nothing else.

Everything else is passed through on purpose, by the one list of the runner.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Collection

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import SandboxImportNotificationPolicy

from plansurvive.worker import PASSED_THROUGH
from plansurvive.workflows.registration.workflow_types import WORKFLOWS
from tests.test_imports import ROOT, modules

DEFINING = {
    f"plansurvive.workflows.{name}"
    for name in (
        *("agent", "file_changes", "guards.lock_keeper", "limits.keeper"),
        *("notify.notifier", "plan", "upkeep.prune"),
    )
}


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
    return {words[1] for words in named if words[0] == "Module" and "intentionally" in words} | {
        workflow.__module__ for workflow in WORKFLOWS
    }


async def _no_histories() -> AsyncIterator[WorkflowHistory]:
    none: list[WorkflowHistory] = []
    for history in none:
        yield history


async def test_the_sandbox_loads_again_what_defines_a_workflow_and_nothing_else() -> None:
    assert await loaded_again(PASSED_THROUGH) == DEFINING


@pytest.mark.slow
async def test_a_module_missing_from_the_list_is_caught() -> None:
    less = [name for name in PASSED_THROUGH if name not in ("plansurvive.workflows.inputs", "plansurvive.plans")]
    missing = {f"plansurvive.{name}" for name in ("workflows.inputs", "plans.run", "plans.model")}
    assert missing <= await loaded_again(less)


def test_every_module_beside_the_workflows_is_passed_through() -> None:
    names = {".".join(("plansurvive", *path.relative_to(ROOT).with_suffix("").parts)) for path in modules("workflows")}
    passed = {name for name in names if any(f"{name}.".startswith(f"{each}.") for each in PASSED_THROUGH)}
    assert {name for name in names - passed if not name.endswith("__init__")} == DEFINING
    assert not DEFINING & set(PASSED_THROUGH)


def test_no_module_of_the_workflows_passes_others_through_by_itself() -> None:
    found = {path.name for path in modules("workflows") if "imports_passed_through" in path.read_text()}
    assert not found
