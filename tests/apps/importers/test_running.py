"""Imported documents run: what was carried over does what its author meant, whether the jobs fail or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from tests.apps.importers.importing import losses, plan_of
from tests.kit.driving import Plans, Started, View, statuses, step

WORKFLOW = """\
on:
  workflow_dispatch:
    inputs:
      broken: {type: boolean, default: false}
jobs:
  build:
    runs-on: ubuntu-latest
    strategy:
      matrix: {side: [left, right]}
    steps:
      - run: echo ${{ matrix.side }} > ${{ matrix.side }}.txt
      - if: inputs.broken && matrix.side == 'right'
        run: exit 3
      - name: Tidy
        if: always()
        run: echo tidy >> ${{ matrix.side }}.txt
      - name: Tell
        if: failure()
        run: echo broken >> ${{ matrix.side }}.txt
      - name: Gone
        if: cancelled()
        run: echo cancelled >> ${{ matrix.side }}.txt
  version:
    needs: build
    runs-on: ubuntu-latest
    outputs: {tag: "${{ steps.meta.outputs.tag }}"}
    steps:
      - id: meta
        run: echo "tag=v7" >> "$GITHUB_OUTPUT"
  publish:
    needs: version
    if: needs.version.outputs.tag != ''
    runs-on: ubuntu-latest
    steps:
      - uses: acme/sign@v3
        with: {what: "${{ needs.version.outputs.tag }}"}
      - run: echo ${{ needs.version.outputs.tag }} > published.txt
  report:
    needs: publish
    if: always()
    runs-on: ubuntu-latest
    steps: [{run: echo over > report.txt}]
  alarm:
    needs: publish
    if: failure()
    runs-on: ubuntu-latest
    steps: [{run: echo alarm > alarm.txt}]
"""

FLOW = """\
document: {dsl: '1.0.3', namespace: test, name: orders, version: '0.1.0'}
do:
  - each:
      for: {each: name, in: "${ .names }"}
      do:
        - note: {run: {shell: {command: "echo ${ $name } >> names.txt"}}}
  - attempt:
      try:
        - break: {run: {shell: {command: exit 4}}}
      catch:
        do:
          - mend: {run: {shell: {command: echo mended > mended.txt}}}
  - paid:
      listen: {to: {one: {with: {type: com.example.paid, data: "${ .total > 10 }"}}}}
  - choose:
      switch:
        - large: {when: "${ .[0].total > 100 }", then: big}
        - others: {then: small}
  - big: {run: {shell: {command: echo big > size.txt}}, then: end}
  - small: {run: {shell: {command: echo small > size.txt}}, then: end}
"""


async def begun(client: Client, queue: str, workspace: Path, plan: dict[str, Any], **inputs: Any) -> Started:
    """Start an imported plan; whoever starts it has read it, and waives its approvals."""
    rest = {name: value for name, value in plan.items() if name != "steps"}
    options = {"approveAll": True, "inputs": inputs}
    return await Plans(client, queue, workspace).start(plan["steps"], options, **rest)


def files(workspace: Path) -> dict[str, str]:
    """The files that commands wrote, their words in one line; those of a `finally` come in any order."""
    return {path.name: " ".join(_sorted(path.read_text().split())) for path in sorted(workspace.glob("*.txt"))}


def _sorted(words: list[str]) -> list[str]:
    return [*words[:1], *sorted(words[1:])]


@pytest.mark.slow
async def test_a_github_workflow_runs_and_asks_a_person_for_what_no_tool_does(
    temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    plan, result = plan_of(WORKFLOW)
    assert [row.partition(":")[0] for row in losses(result)] == ["jobs.publish.steps[0].uses"]
    started = await begun(temporal_client, queue, workspace, plan)
    asked = await started.until(lambda view: view["pending"], "a person is asked")
    [question] = asked["pending"]
    await started.signal("answer", {"stepId": question["stepId"], "value": "done"})
    view = await started.ended()
    assert view["status"] == "completed", view
    assert files(workspace) == {
        "left.txt": "left tidy", "right.txt": "right tidy", "published.txt": "v7", "report.txt": "over",
    }  # fmt: skip


@pytest.mark.slow
async def test_a_github_workflow_that_fails_runs_what_is_for_failures(
    temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    started = await begun(temporal_client, queue, workspace, plan_of(WORKFLOW)[0], broken=True)
    view: View = await started.ended()
    assert statuses(view)["build"] == "failed"
    assert files(workspace) == {
        "left.txt": "left tidy", "right.txt": "right broken tidy", "report.txt": "over", "alarm.txt": "alarm",
    }  # fmt: skip


@pytest.mark.slow
async def test_a_serverless_workflow_runs_with_its_loop_its_catch_its_event_and_its_switch(
    temporal_client: Client, worker: Worker, queue: str, workspace: Path
) -> None:
    plan, result = plan_of(FLOW, "flow.yaml")
    assert losses(result) == []
    started = await begun(temporal_client, queue, workspace, plan, names=["ann", "bob"])
    await started.until(lambda view: step(view, "paid").get("awaiting") == "event", "it waits for the payment")
    for total in (5, 50):
        await started.signal("event", {"name": "com.example.paid", "data": {"total": total}})
    view = await started.ended()
    assert view["status"] == "completed", view
    assert files(workspace) == {"mended.txt": "mended", "names.txt": "ann bob", "size.txt": "small"}
