"""What all of these tests changed on this machine, outside the workspace and the state directory."""

from __future__ import annotations

from tests.compose.host_audit import Audit
from tests.compose.ledger import owned
from tests.compose.stack import OWNER, Stack


async def test_nothing_but_the_workspace_and_the_state_directory_changed(
    stack: Stack, audit: Audit, figures: list[str]
) -> None:
    assert audit.changes() == []
    made = [path for path in stack.workspace.rglob("*") if not path.is_symlink()]
    assert {owned(path) for path in made} == {(OWNER, OWNER)}
    assert not [path for path in made if path.stat().st_mode & 0o7000]
    figures.append(
        f"host audit: {len(audit.before):,} entries of the system and the project unchanged; {len(made)} in the"
        f" workspace, all of user {OWNER}"
    )


async def test_the_audit_sees_what_a_container_changes_elsewhere(stack: Stack, audit: Audit) -> None:
    image, found = stack.container("worker")["Image"], []
    for where, user in ((audit.outside, "0:0"), (stack.folder, f"{OWNER}:{OWNER}")):
        (where / "found").mkdir()
        (where / "found").chmod(0o777)
        command = ("--entrypoint=touch", image, "/found/new")
        stack.engine.run("run", "--rm", f"--volume={where}/found:/found", f"--user={user}", *command)
        found.append(str(where / "found/new"))
    assert set(found) <= set(audit.changes())
