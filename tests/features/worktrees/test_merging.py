"""`merge_worktrees` on real repositories: one commit a step, all or none, and nobody's work lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.features.worktrees.merge_tool import merge_tool, revert_tool
from plansurvive.features.worktrees.model import Choice, WorktreeConflict
from plansurvive.plans.definition.questions import problem
from tests.features.worktrees.repositories import Site, git

LINES = "1\n2\n3\n4\n5\n6\n"


@pytest.fixture
async def two(site: Site) -> Site:
    """Two steps that have changed different lines of one file, and added one each."""
    (site.workspace / "a.txt").write_text(LINES)
    git(site.workspace, "commit", "-q", "-a", "-m", "lines")
    await change(site, "first", LINES.replace("1", "first"))
    await change(site, "last", LINES.replace("6", "last"))
    return site


async def change(site: Site, tree: str, text: str, path: str = "a.txt") -> None:
    await site.run(tree, "write_file", path=path, content=text)
    await site.run(tree, "write_file", path=f"{tree}.txt", content=tree)


async def merged(site: Site, *steps: str, **more: Any) -> Any:
    return (await site.merge(merge_tool(site.root), steps=list(steps), **more)).value


async def refused(site: Site, *steps: str, **more: Any) -> ApplicationError:
    """The error of a merge after which every branch, file and index is as before."""
    before = state(site)
    with pytest.raises(ApplicationError) as caught:
        await merged(site, *steps, **more)
    assert state(site) == before
    return caught.value


def state(site: Site) -> list[str]:
    asked = (("for-each-ref",), ("status", "--porcelain"), ("diff", "HEAD"), ("rev-parse", "HEAD"))
    return [git(site.workspace, *each) for each in asked]


async def test_each_step_is_one_commit_on_the_branch_that_is_checked_out(two: Site) -> None:
    value = await merged(two, "first", "last")
    assert two.log("main") == ["Do last", "Do first", "lines", "first"]
    assert value == {"commits": two.log("main", "%H")[1::-1], "into": "main", "conflicts": []}
    assert two.log("main", "%(trailers:only)%x00")[0].startswith("Plan: p")
    text = LINES.replace("1", "first").replace("6", "last")
    assert (two.workspace / "a.txt").read_text() == text
    assert (two.workspace / "last.txt").read_text() == "last"
    assert git(two.workspace, "status", "--porcelain") == ""


async def test_the_strategy_merge_gives_a_merge_commit_each(two: Site) -> None:
    await merged(two, "first", "last", strategy="merge")
    assert git(two.workspace, "log", "--first-parent", "--format=%s", "main").split("\n")[:2] == [
        "Merge plans/p/last", "Merge plans/p/first",
    ]  # fmt: skip
    assert git(two.workspace, "branch", "--no-merged", "main") == ""
    assert git(two.workspace, "status", "--porcelain") == ""


async def test_a_branch_that_is_not_checked_out_moves_without_files(two: Site) -> None:
    git(two.workspace, "branch", "release")
    await merged(two, "last", into="release")
    assert two.log("release")[0] == "Do last"
    assert two.log("main")[0] == "lines"
    assert git(two.workspace, "status", "--porcelain") == ""


async def test_a_conflict_names_the_files_and_merges_none_of_the_steps(two: Site) -> None:
    await change(two, "other", LINES.replace("1", "other"))
    error = await refused(two, "last", "first", "other")
    assert error.type == "WORKTREE_CONFLICT"
    assert "step 'other' conflicts with the branch in a.txt" in error.message


async def conflict(site: Site, *steps: str, **more: Any) -> WorktreeConflict:
    """What is asked about a merge that is in conflict."""
    error = await refused(site, *steps, **more)
    assert error.type == "WORKTREE_CONFLICT"
    found = WorktreeConflict.model_validate(error.details[0]["parts"]["worktrees"])
    assert problem(found.question) == ""
    assert set(found.places) == set(found.question["schema"]["required"])
    return found


async def test_a_conflict_is_asked_about_place_by_place_and_merged_as_was_chosen(two: Site) -> None:
    await change(two, "other", LINES.replace("1", "one\nuno").replace("6", "six"))
    await merged(two, "first", "last")
    found = await conflict(two, "other")
    assert list(found.places) == ["a.txt:1", "a.txt:6"]
    shown = [row.removeprefix("    | ") for row in found.question["question"].split("\n") if row.startswith("    | ")]
    assert shown == ["1", "first", "one", "uno", "6", "last", "six"]
    takes = {"a.txt:1": ("theirs", ""), "a.txt:6": ("other", "VI\r\n(six)")}
    chosen = [Choice(place=place, take=takes[name][0], text=takes[name][1]) for name, place in found.places.items()]
    assert (await conflict(two, "other", chosen=chosen[:1])).places == found.places
    await merged(two, "other", chosen=chosen)
    assert (two.workspace / "a.txt").read_text() == "one\nuno\n2\n3\n4\n5\nVI\n(six)\n"
    assert two.log("main")[:2] == ["Do other", "Do last"]
    assert git(two.workspace, "status", "--porcelain") == ""


async def test_a_choice_counts_for_the_conflict_that_was_shown_and_for_no_other(two: Site) -> None:
    await change(two, "other", LINES.replace("1", "other"))
    await merged(two, "first")
    found = await conflict(two, "other")
    chosen = [Choice(place=place, take="theirs") for place in found.places.values()]
    (two.workspace / "a.txt").write_text(LINES.replace("1", "changed meanwhile"))
    git(two.workspace, "commit", "-q", "-a", "-m", "meanwhile")
    again = await conflict(two, "other", chosen=chosen)
    assert "changed meanwhile" in again.question["question"]
    (two.workspace / "unrelated.txt").write_text("x")
    git(two.workspace, "add", "unrelated.txt")
    git(two.workspace, "commit", "-q", "-m", "unrelated")
    await merged(two, "other", chosen=[Choice(place=place, take="ours") for place in again.places.values()])
    assert (two.workspace / "a.txt").read_text() == LINES.replace("1", "changed meanwhile")


async def test_a_file_that_one_side_deleted_or_that_is_no_text_is_chosen_as_a_whole(site: Site) -> None:
    await site.run("gone", "delete_file", path="a.txt")
    await site.run("gone", "run_command", command=r"printf '\000\001' > b.txt")
    await site.run("edit", "write_file", path="a.txt", content="edited\n")
    await site.run("edit", "write_file", path="b.txt", content="text\n")
    await merged(site, "edit")
    found = await conflict(site, "gone")
    assert list(found.places) == ["a.txt", "b.txt"]
    assert "the work of step 'gone' (theirs): there is no such file" in found.question["question"]
    assert "(theirs): a file of 2 bytes; git show " in found.question["question"]
    await merged(site, "gone", chosen=[Choice(place=place, take="theirs") for place in found.places.values()])
    assert not (site.workspace / "a.txt").exists()
    assert (site.workspace / "b.txt").read_bytes() == b"\0\1"


async def test_more_places_than_a_question_has_room_for_are_asked_about_next(site: Site) -> None:
    names = [f"f{number:02}.txt" for number in range(14)]
    for tree in ("one", "two"):
        await site.run(tree, "run_command", command=f"for f in {' '.join(names)}; do echo {tree} > $f; done")
    await merged(site, "one")
    found = await conflict(site, "two")
    assert "2 more files in conflict will be asked about next." in found.question["question"]
    chosen = [Choice(place=place, take="theirs") for place in found.places.values()]
    rest = await conflict(site, "two", chosen=chosen)
    assert [each.path for each in (*found.places.values(), *rest.places.values())] == names


async def test_marks_that_no_step_has_removed_are_not_merged(two: Site) -> None:
    await change(two, "other", LINES.replace("1", "other"))
    bring = merge_tool(two.root)
    value = (await two.run("both", bring, step="both.bring", steps=["first", "other"])).value
    assert value["conflicts"] == ["a.txt"]
    assert len(value["commits"]) == 2
    marked = (two.files("both") / "a.txt").read_text()
    assert all(each in marked for each in ("<<<<<<< ", "first\n", "||||||| ", "1\n", "other\n", ">>>>>>> "))
    assert "are not resolved: a.txt" in (await refused(two, "both")).message
    await two.run("both", "write_file", step="both.more", path="more.txt", content="x")
    assert "are not resolved: a.txt" in (await refused(two, "both")).message
    await two.run("both", "run_command", step="both.fix", command="echo fixed > a.txt")
    await merged(two, "both")
    assert two.log("main")[:4] == ["Do both.fix", "Do both.more", "Do first", "lines"]
    assert (two.workspace / "other.txt").read_text() == "other"


async def test_an_undo_reverts_each_commit_and_keeps_what_others_have_done_since(two: Site) -> None:
    value = await merged(two, "first", "last")
    git(two.workspace, "commit", "-q", "--allow-empty", "-m", "since")
    (two.workspace / "a.txt").write_text((two.workspace / "a.txt").read_text().replace("3", "three"))
    git(two.workspace, "commit", "-q", "-a", "-m", "theirs")
    done = (await two.merge(revert_tool(two.root), commits=value["commits"], into=value["into"])).value
    assert two.log("main")[:4] == ['Revert "Do first"', 'Revert "Do last"', "theirs", "since"]
    assert f"This reverts commit {value['commits'][1]}." in git(two.workspace, "show", "-s", done["commits"][0])
    assert (two.workspace / "a.txt").read_text() == LINES.replace("3", "three")
    assert not (two.workspace / "last.txt").exists()
    assert git(two.workspace, "status", "--porcelain") == ""


async def test_a_merge_commit_is_undone_too(two: Site) -> None:
    value = await merged(two, "first", "last", strategy="merge")
    await two.merge(revert_tool(two.root), commits=value["commits"])
    assert (two.workspace / "a.txt").read_text() == LINES
    assert two.log("main")[0] == 'Revert "Merge plans/p/first"'


@pytest.mark.parametrize(("commit", "said"), [("", "undoing commit"), ("f" * 40, "is not on the branch main")])
async def test_an_undo_that_others_have_built_on_is_refused(two: Site, commit: str, said: str) -> None:
    value = await merged(two, "first")
    (two.workspace / "a.txt").write_text(LINES.replace("1", "built on it"))
    git(two.workspace, "commit", "-q", "-a", "-m", "theirs")
    before = state(two)
    with pytest.raises(ApplicationError, match=said) as caught:
        await two.merge(revert_tool(two.root), commits=[commit] if commit else value["commits"])
    assert caught.value.type in ("WORKTREE_CONFLICT", "WORKTREE_REFUSED")
    assert state(two) == before


async def test_the_files_of_a_merge_are_those_of_its_step(two: Site) -> None:
    done = await two.merge(merge_tool(two.root), steps=["first"])
    assert sorted(done.wrote) == ["a.txt", "first.txt"]


async def test_what_a_person_has_not_committed_is_not_touched(two: Site) -> None:
    (two.workspace / "b.txt").write_text("mine\n")
    assert (await refused(two, "first")).type == "WORKTREE_DIRTY"
    git(two.workspace, "checkout", "-q", "b.txt")
    (two.workspace / "first.txt").write_text("untracked, and in the way\n")
    assert (await refused(two, "first")).type == "WORKTREE_DIRTY"
    assert (two.workspace / "first.txt").read_text() == "untracked, and in the way\n"


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ({"steps": ["none"]}, "WORKTREE_MISSING", "step 'none' has no worktree"),
        ({"into": "nowhere"}, "WORKTREE_REFUSED", "no branch 'nowhere'"),
        ({"into": "../../main"}, "WORKTREE_REFUSED", "can have no branch called"),
        ({"into": "-x"}, "WORKTREE_REFUSED", "no branch"),
        ({"into": "elsewhere"}, "WORKTREE_REFUSED", "is checked out in"),
    ],
    ids=lambda each: str(each)[:30],
)
async def test_a_merge_that_cannot_be_is_refused(two: Site, args: dict[str, Any], code: str, said: str) -> None:
    git(two.workspace, "worktree", "add", "-q", "-b", "elsewhere", str(two.root.parent / "elsewhere"))
    error = await refused(two, *args.pop("steps", ["first"]), **args)
    assert (error.type, said in error.message) == (code, True), error.message


async def test_an_attempt_after_a_killed_one_finishes_the_same_merge(two: Site) -> None:
    here, tool = two.attempts.but(step="m", again=True), merge_tool(two.root)
    old = git(two.workspace, "rev-parse", "main")
    first = await here.run(tool, steps=["first", "last"])
    new = git(two.workspace, "rev-parse", "main")
    git(two.workspace, "update-ref", "refs/heads/main", old)  # as if it had died before the branch was moved
    assert (await here.run(tool, steps=["first", "last"])).value == first.value
    assert git(two.workspace, "rev-parse", "main") == new
    assert git(two.workspace, "status", "--porcelain") == ""
    assert (await here.run(tool, steps=["first", "last"])).value == first.value  # or after that
    assert two.log("main")[:3] == ["Do last", "Do first", "lines"]


async def test_a_step_that_changed_nothing_is_no_commit(two: Site) -> None:
    await two.run("idle", "read_file", path="a.txt")
    assert (await merged(two, "idle"))["commits"] == []


async def test_the_items_of_a_loop_are_merged_by_its_id(site: Site) -> None:
    for key in "xy":
        await site.run(f"each[{key}]", "write_file", path=f"{key}.txt", content=key)
    assert len((await merged(site, "each"))["commits"]) == 2
    assert {"x.txt", "y.txt"} <= set(os.listdir(site.workspace))  # noqa: PTH208


async def test_inside_a_loop_a_name_means_the_step_of_the_same_item(site: Site) -> None:
    for name in ("each[x].code", "each[y].code", "code"):
        await site.run(name, "write_file", path=f"{name[5:6] or 0}.txt", content=name)
    await site.merge(merge_tool(site.root), step="each[x].merge", steps=["code"])
    assert site.log("main") == ["Do each[x].code", "first"]
    await site.merge(merge_tool(site.root), step="other[x].merge", steps=["code", "each"])
    assert sorted(site.log("main")[:2]) == ["Do code", "Do each[y].code"]


async def test_a_merged_commit_keeps_its_author(two: Site) -> None:
    git(two.workspace, "config", "user.name", "Ann")
    await change(two, "hers", "x", path="c.txt")
    git(two.workspace, "config", "user.name", "Bob")
    await merged(two, "first", "hers")
    assert two.log("main", "%an, %cn")[:2] == ["Ann, Bob", "plan, plan"]


def test_nothing_of_ours_is_left_in_the_repository_but_branches(site: Site) -> None:
    assert not Path(site.workspace, ".git", "worktrees").exists()
