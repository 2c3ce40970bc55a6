"""Every example plan, run from the command line in a copy of its data: the files are those expected."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from temporalio.worker import Worker

from plansurvive.client.plan_file import load
from tests.client.cli.command import Ended, plan
from tests.kit.waiting import until

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PLANS = sorted([*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("*/plan.*")])
Run = Callable[..., Awaitable[Ended]]


@pytest.fixture
def run(environ: dict[str, str], worker: Worker) -> Run:
    """Run a command of `plan` while a worker listens."""

    async def command(*arguments: object) -> Ended:
        return await plan(environ, *map(str, arguments))

    return command


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    """Copy an example with its data."""

    def copied(name: str) -> Path:
        return shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=shutil.ignore_patterns("expected"))

    return copied


def assert_as_expected(example: str, made: Path) -> None:
    """Every file in the example's `expected` directory was made, byte for byte."""
    expected = EXAMPLES / example / "expected"
    files = [path.relative_to(expected) for path in expected.rglob("*") if path.is_file()]
    assert files
    for file in files:
        assert (made / file).read_bytes() == (expected / file).read_bytes(), file


def made_by(script: str, directory: Path) -> Path:
    """The directory that an example's script sets up."""
    subprocess.run(["sh", str(EXAMPLES / script), str(directory)], check=True)
    return directory


def output_of(*command: str | Path) -> str:
    """What a program prints."""
    return subprocess.run([*command], check=True, capture_output=True, text=True).stdout


def test_there_are_examples_to_run() -> None:
    assert [path.parent.name for path in PLANS if path.parent != EXAMPLES] == [
        "agents-in-worktrees", "build-and-test", "csv-cleanup", "map-files", "new-project", "nightly", "questions",
        "release-notes", "risky-cleanup", "rollback", "sub-plans", "tidy-agent",
    ]  # fmt: skip


@pytest.mark.parametrize("path", PLANS, ids=lambda path: str(path.relative_to(EXAMPLES)))
async def test_an_example_has_no_problem_and_describes_every_step(path: Path, environ: dict[str, str]) -> None:
    checked = await plan(environ, "check", str(path), "--json")
    assert checked.code == 0
    assert checked.json["problems"] == []
    assert all(step.get("description") for step in load(str(path)).data["steps"])


@pytest.mark.slow
@pytest.mark.in_turn
async def test_csv_cleanup_gives_the_expected_table_and_report(run: Run, copy: Callable[[str], Path]) -> None:
    orders = copy("csv-cleanup")
    ended = await run("run", orders / "plan.yaml")
    assert ended.code == 0, ended.out + ended.err
    assert_as_expected("csv-cleanup", orders)
    assert not (orders / "merged.json").exists()


@pytest.mark.slow
async def test_csv_cleanup_works_on_data_elsewhere_and_can_be_run_again(run: Run, copy: Callable[[str], Path]) -> None:
    orders = copy("csv-cleanup")
    for _ in range(2):
        ended = await run("run", EXAMPLES / "csv-cleanup" / "plan.yaml", "--workspace", orders)
        assert ended.code == 0, ended.out + ended.err
    assert_as_expected("csv-cleanup", orders)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_csv_cleanup_writes_no_list_of_rejected_rows_when_all_are_good(
    run: Run, copy: Callable[[str], Path]
) -> None:
    orders = copy("csv-cleanup")
    for name in ("north", "south", "web"):
        row = f"order,date,customer,item,amount,price\n{name},2026-01-01,A,b,1,2\n"
        (orders / f"{name}.csv").write_text(row)
    ended = await run("run", orders / "plan.yaml", "--json")
    assert ended.json["summary"]["counts"] == {"completed": 8, "skipped": 1, "total": 9}
    assert "| **worth** | **6.00** |" in (orders / "report.md").read_text()
    assert not (orders / "rejected.csv").exists()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_sub_plans_give_the_expected_chapters_and_contents(run: Run, copy: Callable[[str], Path]) -> None:
    book = copy("sub-plans")
    ended = await run("run", book / "plan.yaml")
    assert ended.code == 0, ended.out + ended.err
    assert_as_expected("sub-plans", book)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_release_notes_come_from_a_real_history(run: Run, tmp_path: Path) -> None:
    station = made_by("release-notes/make_history.sh", tmp_path / "station")
    ended = await run("run", EXAMPLES / "release-notes/plan.yaml", "--workspace", station, "--input", "since=v1.0.0")
    assert ended.code == 0, ended.out + ended.err
    assert_as_expected("release-notes", station)


async def test_a_release_that_fails_is_taken_back_and_reported(run: Run, tmp_path: Path) -> None:
    ended = await run("run", EXAMPLES / "rollback/plan.yaml", "--workspace", tmp_path, "--json")
    assert (ended.code, ended.json["summary"]["status"]) == (1, "partial")
    assert [each["stepId"] for each in ended.json["summary"]["undone"]] == ["announce", "package"]
    assert_as_expected("rollback", tmp_path)


@pytest.mark.slow
async def test_a_hostile_tag_name_is_no_command(run: Run, tmp_path: Path) -> None:
    station = made_by("release-notes/make_history.sh", tmp_path / "station")
    plan_file = EXAMPLES / "release-notes/plan.yaml"
    ended = await run("run", plan_file, "--workspace", station, "--input", "since=x; touch pwned; echo ", "--json")
    assert ended.code == 1
    assert ended.json["summary"]["status"] == "partial"
    assert not (station / "pwned").exists()


async def test_build_and_test_gives_a_program_that_runs_and_a_report(run: Run, copy: Callable[[str], Path]) -> None:
    project = copy("build-and-test")
    ended = await run("run", project / "plan.yaml")
    assert ended.code == 0, ended.out + ended.err
    assert (project / "out/report.md").read_bytes() == (EXAMPLES / "build-and-test/expected/report.md").read_bytes()
    packed = output_of(sys.executable, project / "out/textstats.pyz", project / "sample.txt")
    assert packed.strip() == "22 words, 3 sentences, reading ease 99.4"


@pytest.mark.slow
async def test_build_and_test_stops_at_a_failed_test_and_packs_nothing(run: Run, copy: Callable[[str], Path]) -> None:
    project = copy("build-and-test")
    (project / "tests/test_broken.py").write_text("raise SystemExit(3)\n")
    ended = await run("run", project / "plan.yaml", "--json")
    assert ended.code == 1
    assert ended.json["summary"]["status"] == "failed"
    assert {item["stepId"]: item["code"] for item in ended.json["summary"]["failed"]} == {"tests": "COMMAND_FAILED"}
    assert not (project / "out").exists()


async def until_asked(run: Run, name: str) -> None:
    """Until the plan waits for a person."""

    async def waits() -> bool:
        return bool((await run("show", name, "--json")).json["pending"])

    await until(waits, f"{name} asks", every=0.2)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_risky_cleanup_deletes_what_was_approved_and_nothing_else(run: Run, tmp_path: Path) -> None:
    mess = made_by("risky-cleanup/make_mess.sh", tmp_path / "mess")
    started = await run("start", EXAMPLES / "risky-cleanup/plan.yaml", "--workspace", mess, "--json")
    name = started.json["planId"]
    await until_asked(run, name)
    assert len(list(mess.rglob("*.log"))) == 3
    assert (await run("approve", name, "remove", "--by", "ann")).code == 0
    ended = await run("watch", name)
    assert ended.code == 0, ended.out + ended.err
    assert_as_expected("risky-cleanup", mess)
    assert [path.name for path in sorted(mess.glob("*/*"))] == ["settings.db", "app.py"]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_risky_cleanup_deletes_nothing_when_denied(run: Run, tmp_path: Path) -> None:
    mess = made_by("risky-cleanup/make_mess.sh", tmp_path / "mess")
    before = {path: path.read_bytes() for path in mess.rglob("*") if path.is_file()}
    started = await run("start", EXAMPLES / "risky-cleanup/plan.yaml", "--workspace", mess, "--json")
    name = started.json["planId"]
    await until_asked(run, name)
    assert (await run("deny", name, "remove", "--comment", "not today")).code == 0
    ended = await run("watch", name)
    assert ended.code == 1
    summary = json.loads((await run("summary", name, "--json")).out)
    assert summary["status"] == "partial"
    assert summary["counts"] == {"completed": 4, "denied": 1, "blocked": 2, "total": 7}
    assert all(path.read_bytes() == content for path, content in before.items())


async def test_new_project_takes_its_names_and_its_choices_from_inputs(run: Run, workspace: Path) -> None:
    inputs = ["name=comet", 'authors=["Ada Berg", "Ben Okafor"]', "license=none"]
    flags = [word for pair in inputs for word in ("--input", pair)]
    ended = await run("run", EXAMPLES / "new-project/plan.json", *flags)
    assert ended.code == 0, ended.out + ended.err
    assert_as_expected("new-project", workspace)
    assert not (workspace / "comet/LICENSE").exists()


async def test_new_project_says_which_input_is_missing_and_starts_nothing(run: Run, workspace: Path) -> None:
    ended = await run("run", EXAMPLES / "new-project/plan.json")
    assert ended.code == 2
    said = "'name' (Name of the project, also of its directory) is required; give it with --input name=VALUE"
    assert said in ended.err + ended.out
    assert list(workspace.iterdir()) == []


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_nightly_plan_says_what_changed_and_the_second_night_asks_nobody(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    plan_file = EXAMPLES / "nightly/plan.yaml"
    assert (await run("check", plan_file, "--json")).json["asks"] == []
    for night in (1, 2):
        ended = await run("run", plan_file, "--workspace", tmp_path)
        assert ended.code == 0, ended.out + ended.err
        text = (tmp_path / "nightly/report.md").read_text()
        assert ("> a.txt 1" in text) is (night == 1)
        (tmp_path / f"new-{night}.txt").touch()
    assert "> new-1.txt 0" in text


async def test_questions_are_answered_by_command_and_an_event_ends_the_wait(run: Run, tmp_path: Path) -> None:
    started = await run("start", EXAMPLES / "questions" / "plan.yaml", "--workspace", tmp_path, "--id", "letters")
    assert started.code == 0, started.err
    assert (await run("answer", "letters", "audience", "colleagues")).code == 0
    assert (await run("answer", "letters", "details", '{"copies": 20, "signature": "Ann"}')).code == 0
    sent = await run("event", "letters", "print.finished", "--data", '{"job": "letter", "pages": 3}')
    assert sent.code == 0, sent.err
    assert (await run("watch", "letters")).code == 0
    assert_as_expected("questions", tmp_path)
