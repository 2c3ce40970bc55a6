"""What an LLM that writes a plan is shown of the templates."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from plansurvive.activities.values.redaction import Secrets
from plansurvive.features.templates.find import project_store, user_store
from plansurvive.features.templates.library import LIBRARY
from plansurvive.features.templates.listing import MAX_FOR_MODEL


def test_templates_are_listed_for_the_model_without_secrets_and_without_ambiguous_names(
    workspace: Path, state_dir: Path
) -> None:
    plan = "inputs: {version: {type: string, description: Which one}, dry: {type: boolean, default: true}}\nsteps: []\n"
    project, own = project_store(workspace), user_store(state_dir)
    project.save("notes", plan, "Writes\nthe notes of " + "x" * 180 + " canary-of-the-test")
    project.save("deploy", plan)
    own.save("deploy", plan + "\n")
    own.save("mine", "steps: []")
    project.save("damaged", "steps: [")
    secrets = Secrets([SecretStr("canary-of-the-test")])
    rows = LIBRARY.for_model(str(workspace), state_dir, secrets.out_of).splitlines()
    assert len(rows) == 2
    assert rows[0].startswith("- notes: Writes the notes of xxx")
    assert "canary" not in rows[0]
    assert rows[0].endswith("| inputs: version (string, required): Which one; dry (boolean, default true)")
    assert rows[1] == "- mine | inputs: none"


def test_a_link_in_place_of_the_templates_is_not_read(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    project_store(tmp_path / "secret").save("notes", "steps: []")
    (workspace / ".plans").symlink_to(tmp_path / "secret" / ".plans")
    assert LIBRARY.for_model(str(workspace), None, str) == ""


def test_as_many_templates_as_fit_are_listed(workspace: Path) -> None:
    for number in range(MAX_FOR_MODEL + 5):
        project_store(workspace).save(f"t{number:02}", "steps: []", "x" * 500)
    rows = LIBRARY.for_model(str(workspace), None, str).splitlines()
    assert len(rows) == MAX_FOR_MODEL
    assert max(map(len, rows)) < 300
