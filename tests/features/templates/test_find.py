"""Templates are found by name and version, and what lies in `.plans/` of a cloned repository is not trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from plansurvive.features.templates.find import find_template, project_store, stores, user_store
from plansurvive.features.templates.names import TemplateError, hash_of, new_name
from plansurvive.plans.definition.parsing import MAX_BYTES
from plansurvive.plans.errors import InvalidPlan

FIRST = "# What it is for\nsteps:\n  - {id: a, tool: sleep, args: {seconds: 1}}\n"
SECOND = FIRST.replace("1}", "2}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


def code_of(name: str, *places: Path) -> str:
    with pytest.raises(TemplateError) as caught:
        find_template(name, *places)
    return caught.value.code


def test_a_name_means_the_newest_version_and_a_hash_exactly_one(project: Path) -> None:
    store = project_store(project)
    first, _ = store.save("build", FIRST)
    second, _ = store.save("build", SECOND)
    assert find_template("build", project).hash == second == hash_of(SECOND)
    old = find_template(f"build@{first[:6]}", project)
    assert (old.hash, old.text) == (first, FIRST)
    assert old.data == {"steps": [{"id": "a", "tool": "sleep", "args": {"seconds": 1}}]}


def test_a_file_is_kept_as_it_was_written_and_listed_oldest_first(project: Path) -> None:
    store = project_store(project)
    hashes = [store.save("build", text, "Builds it")[0] for text in (FIRST, SECOND)]
    folder = project / ".plans" / "build"
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [f"{each}.yaml" for each in hashes] + ["template.yaml"]
    )
    assert (folder / f"{hashes[0]}.yaml").read_text() == FIRST
    index = store.index("build")
    assert index
    assert [each.hash for each in index.versions] == hashes
    assert index.description == "Builds it"


def test_the_same_content_again_changes_nothing(project: Path) -> None:
    store = project_store(project)
    assert store.save("build", FIRST)[1]
    before = {path: path.stat().st_mtime_ns for path in (project / ".plans" / "build").iterdir()}
    assert store.save("build", FIRST) == (hash_of(FIRST), False)
    assert store.save("build", FIRST.replace("\n", "\r\n")) == (hash_of(FIRST), False)
    assert {path: path.stat().st_mtime_ns for path in (project / ".plans" / "build").iterdir()} == before


def test_an_older_content_saved_again_is_the_newest(project: Path) -> None:
    store = project_store(project)
    first, _ = store.save("build", FIRST)
    store.save("build", SECOND)
    assert store.save("build", FIRST) == (first, True)
    assert find_template("build", project).hash == first
    index = store.index("build")
    assert index
    assert len(index.versions) == 2


def test_an_unknown_name_gets_the_nearest_and_an_unknown_version_says_where_to_look(project: Path) -> None:
    project_store(project).save("release-notes", FIRST)
    with pytest.raises(TemplateError, match="did you mean 'release-notes'") as caught:
        find_template("relase-notes", project)
    assert caught.value.code == "UNKNOWN_TEMPLATE"
    with pytest.raises(TemplateError, match="plan template show release-notes") as caught:
        find_template("release-notes@000000", project)
    assert caught.value.code == "UNKNOWN_TEMPLATE"
    assert code_of("x", project / "nowhere") == "UNKNOWN_TEMPLATE"


def test_a_hash_that_two_versions_begin_with_is_refused(project: Path) -> None:
    store, seen = project_store(project), dict[str, str]()
    for number in range(100_000):
        text = f"steps: [{number}]\n"
        prefix = hash_of(text)[:6]
        if prefix in seen:
            break
        seen[prefix] = text
    for each in (seen[prefix], text):
        store.save("build", each)
    assert code_of(f"build@{prefix}", project) == "AMBIGUOUS_TEMPLATE"


def test_a_repository_cannot_stand_in_for_a_template_of_the_users_own(project: Path, state: Path) -> None:
    user_store(state).save("deploy", FIRST)
    assert find_template("deploy", project, state).where == "user"
    project_store(project).save("deploy", SECOND)
    assert code_of("deploy", project, state) == "AMBIGUOUS_TEMPLATE"
    assert find_template(f"deploy@{hash_of(FIRST)[:12]}", project, state).where == "user"
    assert find_template(f"deploy@{hash_of(SECOND)[:12]}", project, state).where == "project"
    project_store(project).save("deploy", FIRST)
    assert find_template("deploy", project, state).text == FIRST


def test_a_version_edited_by_hand_is_refused_and_can_be_saved_as_one_of_its_own(project: Path) -> None:
    store = project_store(project)
    version, _ = store.save("build", FIRST)
    file = project / ".plans" / "build" / f"{version}.yaml"
    file.write_text(SECOND)
    with pytest.raises(TemplateError, match="plan template save build") as caught:
        find_template("build", project)
    assert caught.value.code == "TEMPLATE_CHANGED"
    store.save("build", file.read_text())
    assert find_template("build", project).text == SECOND
    store.save("build", FIRST)  # restores the file of the version
    assert find_template(f"build@{version}", project).text == FIRST


def test_a_missing_version_and_a_damaged_list_say_what_to_do(project: Path) -> None:
    version, _ = project_store(project).save("build", FIRST)
    folder = project / ".plans" / "build"
    (folder / f"{version}.yaml").unlink()
    assert code_of("build", project) == "TEMPLATE_CHANGED"
    (folder / "template.yaml").write_text("<<<<<<< ours\nversions: []\n")
    with pytest.raises(TemplateError, match=r"line 2, column 9.*repair it") as caught:
        find_template("build", project)
    assert caught.value.code == "TEMPLATE_CHANGED"


@pytest.mark.parametrize(
    "name", ["../x", "a/b", ".x", "", "x" * 65, "x@12345", "x@zzzzzz", "x\0", "x\n", "-x", "é", "x@" + "0" * 65]
)
def test_a_name_that_could_leave_its_folder_is_refused(name: str, project: Path) -> None:
    assert code_of(name, project) == "BAD_TEMPLATE"


@pytest.mark.parametrize("linked", [".plans", ".plans/build", ".plans/build/template.yaml", "version"])
def test_a_link_is_never_followed(linked: str, project: Path, tmp_path: Path) -> None:
    version, _ = project_store(project).save("build", FIRST)
    path = project / (f".plans/build/{version}.yaml" if linked == "version" else linked)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert code_of("build", project) == "BAD_TEMPLATE"
    if linked != "version":
        with pytest.raises(TemplateError):
            project_store(project).save("build", SECOND)
    assert [store.where for store in stores(project, None)] == ["project"]


def test_a_pipe_and_a_file_without_end_do_not_hold_up_the_reader(project: Path) -> None:
    version, _ = project_store(project).save("build", FIRST)
    file = project / ".plans" / "build" / f"{version}.yaml"
    file.unlink()
    os.mkfifo(file)
    assert code_of("build", project) == "BAD_TEMPLATE"
    file.unlink()
    with file.open("wb") as large:
        large.truncate(MAX_BYTES + 1)
    assert code_of("build", project) == "BAD_TEMPLATE"


def test_a_content_that_is_no_plan_file_is_an_invalid_plan(project: Path) -> None:
    project_store(project).save("build", "a: [")
    with pytest.raises(InvalidPlan, match="PLAN_NOT_YAML"):
        find_template("build", project)


def test_the_users_templates_are_private_and_a_projects_are_files_like_others(project: Path, state: Path) -> None:
    version, _ = user_store(state).save("build", FIRST)
    folder = state / "templates" / "build"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder)} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    project_store(project).save("build", FIRST)
    (project / "other").touch()
    shared = project / ".plans" / "build" / f"{version}.yaml"
    assert shared.stat().st_mode == (project / "other").stat().st_mode


def test_a_template_is_deleted_whole_or_by_version(project: Path) -> None:
    store = project_store(project)
    first, _ = store.save("build", FIRST)
    second, _ = store.save("build", SECOND)
    store.delete("build", second)
    assert find_template("build", project).hash == first
    assert code_of(f"build@{second}", project) == "UNKNOWN_TEMPLATE"
    store.delete("build")
    assert store.names() == []
    assert list((project / ".plans").iterdir()) == []


def test_only_folders_with_a_list_of_versions_are_templates(project: Path) -> None:
    store = project_store(project)
    store.save("build", FIRST)
    (project / ".plans" / "notes").mkdir()
    (project / ".plans" / "README.md").touch()
    assert store.names() == ["build"]


def test_json_is_kept_as_json(project: Path) -> None:
    version, _ = project_store(project).save("build", '{"steps": []}')
    assert (project / ".plans" / "build" / f"{version}.json").exists()
    assert find_template("build", project).data == {"steps": []}


def test_a_new_name_with_a_space_is_refused_and_has_no_advice_about_versions() -> None:
    with pytest.raises(TemplateError, match="'My Release' cannot be the name of a template") as refused:
        new_name("My Release")
    assert "version" not in refused.value.message
