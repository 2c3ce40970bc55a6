"""`plan files` and `plan undo`, as processes against the real server: what is shown, put back, and refused."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from tests.client.cli.command import Ended, plan, written

Environ = dict[str, str]
STEPS: list[dict[str, Any]] = [
    {"id": "load", "tool": "read_file", "args": {"path": "data.csv"}},
    {"id": "save", "tool": "write_file", "args": {"path": "out/copy.csv", "content": "$load"}},
    {
        "id": "sort",
        "tool": "run_command",
        "args": {"command": "sort out/copy.csv > sorted.csv; sort -o data.csv data.csv; rm theirs.csv"},
        "dependsOn": ["save"],
        "requiresApproval": False,
    },
    {
        "id": "mend",
        "tool": "edit_file",
        "args": {"path": "out/copy.csv", "oldText": "b\n", "newText": "B\n"},
        "dependsOn": ["sort"],
    },
]
SHOWN = """\
save (write_file)
  + out/copy.csv
      --- a/out/copy.csv
      +++ b/out/copy.csv
      @@ -0,0 +1,2 @@
      +b
      +a
sort (run_command)
  + sorted.csv
      --- a/sorted.csv
      +++ b/sorted.csv
      @@ -0,0 +1,2 @@
      +a
      +b
  ~ data.csv
      --- a/data.csv
      +++ b/data.csv
      @@ -1,2 +1,2 @@
      +a
       b
      -a
  - theirs.csv  (previous content unknown)
mend (edit_file)
  ~ out/copy.csv
      --- a/out/copy.csv
      +++ b/out/copy.csv
      @@ -1,2 +1,2 @@
      -b
      +B
       a
"""


@dataclass(frozen=True)
class Ran:
    """A plan that has changed files."""

    name: str
    environ: Environ

    async def told(self, verb: str, *arguments: str) -> Ended:
        """What a command about it says."""
        return await plan(self.environ, verb, self.name, *arguments)


@pytest.fixture
async def ran(environ: Environ, worker: Worker, workspace: Path, tmp_path: Path) -> Ran:
    """A plan of these steps, completed."""
    (workspace / "data.csv").write_text("b\na\n")
    (workspace / "theirs.csv").write_text("theirs\n")
    name = f"sorted-{uuid.uuid4().hex[:8]}"
    ended = await plan(environ, "run", written(tmp_path / "plan.json", {"id": name, "steps": STEPS}))
    assert ended.code == 0, ended.err
    return Ran(name, environ)


def files(workspace: Path) -> dict[str, str]:
    """What the workspace holds."""
    paths = [path for path in workspace.rglob("*") if path.is_file()]
    return {str(path.relative_to(workspace)): path.read_text() for path in paths}


def rows(ended: Ended) -> list[str]:
    """The lines of an answer, without its diffs."""
    return [row.strip() for row in ended.out.splitlines() if not row.startswith("      ")]


async def test_each_step_is_shown_with_what_it_created_changed_and_deleted(ran: Ran) -> None:
    shown = await ran.told("files")
    assert (shown.code, shown.out, shown.err) == (0, SHOWN, "")
    one = await plan(ran.environ, "files", f"plan-{ran.name}", "sort", "--no-diff")
    gone = "- theirs.csv  (previous content unknown)"
    assert rows(one) == ["sort (run_command)", "+ sorted.csv", "~ data.csv", gone]
    told = (await ran.told("files", "--json")).json["calls"]
    assert [(call["stepId"], call["tool"]) for call in told] == [
        ("save", "write_file"), ("sort", "run_command"), ("mend", "edit_file"),
    ]  # fmt: skip
    changes = [(change["kind"], change["path"]) for change in told[1]["changes"]]
    assert changes == [("created", "sorted.csv"), ("changed", "data.csv"), ("deleted", "theirs.csv")]


async def test_one_step_is_put_back(ran: Ran, workspace: Path) -> None:
    undone = await ran.told("undo", "mend")
    assert (undone.code, rows(undone), undone.err) == (0, ["restored out/copy.csv"], "1 undone.\n")
    assert files(workspace)["out/copy.csv"] == "b\na\n"
    assert "mend (edit_file), undone since" in (await ran.told("files")).out
    again = await ran.told("undo", "mend")
    assert (again.code, again.out) == (0, "")
    assert "mend` undid it, " in " ".join(again.err.split()), again.err


async def test_nothing_is_put_back_where_one_file_cannot_be_unless_asked(ran: Ran, workspace: Path) -> None:
    before = files(workspace)
    refused = await ran.told("undo")
    assert (refused.code, files(workspace)) == (1, before)
    assert rows(refused)[-1].startswith("NOT_KEPT theirs.csv (step sort): its previous content is not stored")
    assert refused.err == "Nothing was undone. Use --partly to undo what can be undone.\n"
    partly = await ran.told("undo", "--partly")
    assert (partly.code, files(workspace)) == (1, {"data.csv": "b\na\n"})
    assert set(rows(partly)[:3]) == {"restored data.csv", "deleted sorted.csv", "deleted out/copy.csv"}
    assert partly.err == "3 undone, 1 left unchanged.\n"


async def test_what_was_changed_since_is_refused_with_a_diff(ran: Ran, workspace: Path) -> None:
    (workspace / "out/copy.csv").write_text("B\na\nmine\n")
    refused = await ran.told("undo", "mend")
    assert (refused.code, "CONFLICT out/copy.csv (step mend): it was changed since" in refused.out) == (1, True)
    assert ("      +mine\n" in refused.out, refused.err) == (True, "Nothing was undone.\n")
    told = await ran.told("undo", "mend", "--json")
    assert [(each["path"], each["stepId"], each["code"]) for each in told.json["refused"]] == [
        ("out/copy.csv", "mend", "CONFLICT")
    ]
    assert (told.code, told.json["dryRun"], told.json["restored"]) == (1, True, [])
    assert files(workspace)["out/copy.csv"] == "B\na\nmine\n"


async def test_a_dry_run_says_what_would_be_done(ran: Ran, workspace: Path) -> None:
    before = files(workspace)
    dry = await ran.told("undo", "mend", "--dry-run")
    assert (dry.code, rows(dry), files(workspace)) == (0, ["would restore out/copy.csv"], before)
    assert dry.err == "Dry run: nothing was undone.\n"


async def test_a_plan_that_runs_and_names_of_nothing_are_refused(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    gate = {"id": "gate", "tool": "write_file", "args": {"path": "x", "content": ""}, "requiresApproval": True}
    assert (await plan(environ, "start", written(tmp_path / "gate.json", {"id": "gated", "steps": [gate]}))).code == 0
    for arguments, code, text in (
        (("undo", "gated"), 2, "NOT_ENDED"),
        (("undo", "gated", "nothing"), 2, "NOT_ENDED"),
        (("files", "gated", "nothing"), 2, "UNKNOWN_STEP"),
        (("files", "nowhere"), 4, "PLAN_NOT_FOUND"),
        (("undo", "nowhere"), 4, "PLAN_NOT_FOUND"),
    ):
        ended = await plan(environ, *arguments)
        assert (ended.code, text in ended.err, ended.out) == (code, True, ""), ended
    empty = await plan(environ, "files", "gated")
    assert (empty.code, empty.err) == (0, "No file changes recorded.\n")
    assert (await plan(environ, "cancel", "gated")).code == 0
