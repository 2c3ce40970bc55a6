"""The record of an ended plan: a short Run is in it, a long one beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from plansurvive.activities.lifecycle.record_end import RUN_BYTES, EndRecorder, SummaryWriter
from plansurvive.plans.activity_io import EndRecord, PlanEnd
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Step
from plansurvive.plans.run import text_of
from plansurvive.plans.views.ended import ended
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore
from plansurvive.workflows.payloads import of_json
from tests.plans.building import run_of


@pytest.mark.parametrize(("characters", "files"), [(10, 1), (RUN_BYTES, 2)])
@pytest.mark.parametrize("comes_summarised", [False, True])
async def test_a_short_run_is_stored_with_its_record_and_a_long_one_apart(
    tmp_path: Path, characters: int, files: int, comes_summarised: bool
) -> None:
    values = ValueStore(LocalDirectory(tmp_path / "values"))
    run = run_of(Step(id="a", tool="read_file", args={"path": "a" * characters}))
    run.plan = run.plan.model_copy(update={"id": "p"})
    written = text_of(run)
    summarised = ended(run) if comes_summarised else None
    record = await ActivityEnvironment().run(
        EndRecorder(SummaryWriter(tmp_path), values).record_end, of_json(written, stays=True), summarised
    )
    assert len([each for each in (tmp_path / "values").rglob("*") if each.is_file()]) == files
    assert record.claim is not None
    stored = EndRecord.model_validate(await values.get(record.claim))
    kept = stored.run
    text = (await values.text(kept)).decode() if isinstance(kept, LargeValue) else kept
    assert (text, isinstance(kept, LargeValue)) == (written, files == 2)
    assert (tmp_path / "runs" / "p" / "SUMMARY.md").exists()


def test_what_the_workflow_summarises_arrives_whole() -> None:
    end = ended(run_of(Step(id="a", tool="read_file", args={"path": "a"})))
    assert PlanEnd.model_validate_json(end.model_dump_json(exclude_defaults=True)) == end
